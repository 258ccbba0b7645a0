//! How a switch chooses among the equal-cost ports of a group: a file for each rule, a line here for each scheme.
//!
//! A scheme sees the frame, its group, the switch's own words of memory ([`Forwarding::word`]) and the queues behind its ports
//! ([`Forwarding::waiting`]). `docs/specs/switching.md` states the rules (`SWC-n`).

mod adaptive;
mod conga;
mod detour;
mod flowcut;
mod flowlet;
mod hashed;
mod ofan;
pub mod reunion;
mod rotation;
#[cfg(test)]
mod two_leaves;

pub use adaptive::{Look, MOST_IN_KERNEL, Measure, least, score};
pub use detour::{Groups, MOST_GROUPS};
pub use flowcut::Entries;
pub use flowlet::FLOWLETS;
pub use hashed::hashed;

use crate::Cause;
use crate::config::{PS_FRACTION_BITS, UNIT_BITS};
use crate::frame::Frame;
use crate::hash::mix;
use crate::routes::{Choice, Group, Routes, SwitchConfig};
use crate::trail::Trail;
use crate::word::Word;

/// Makes [`Scheme`] from one list: what a scheme does, its variant, its name, another name for it, what it needs in the tables.
macro_rules! schemes {
    ($($(#[doc = $about:literal])+ $variant:ident $name:literal $(| $alias:literal)? $layout:ident;)+) => {
        /// What chooses a frame's port among those of equal cost.
        #[repr(u32)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[cfg_attr(feature = "settings", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
        pub enum Scheme {
            $(
                $(#[doc = $about])+
                #[cfg_attr(feature = "settings", serde(rename = $name $(, alias = $alias)?))]
                $(#[cfg_attr(feature = "settings", schemars(extend("x-alias" = $alias)))])?
                $variant,
            )+
        }

        impl Scheme {
            /// All of them, in the order of their numbers.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// Its name in scenarios and on the command line.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// Another name for it.
            pub const fn alias(self) -> Option<&'static str> {
                match self {
                    $($(Self::$variant => Some($alias),)?)+
                    _ => None,
                }
            }

            /// What it does, in a sentence or two.
            pub const fn about(self) -> &'static str {
                match self {
                    $(Self::$variant => concat!($($about),+).trim_ascii(),)+
                }
            }

            /// What it needs in the tables.
            pub const fn layout(self) -> Layout {
                match self {
                    $(Self::$variant => Layout::$layout,)+
                }
            }

            /// The scheme with this number; [`Scheme::Ecmp`] where there is none.
            #[inline(always)]
            pub const fn from_number(number: u32) -> Self {
                match number {
                    $(number if number == Self::$variant as u32 => Self::$variant,)+
                    _ => Self::Ecmp,
                }
            }
        }
    };
}

schemes! {
    /// A hash of the five-tuple.
    Ecmp "ecmp" PLAIN;
    /// A hash of the five-tuple; when a port leaves the group, only the flows of that port move (resilient hashing).
    EcmpResilient "ecmp-resilient" RESILIENT;
    /// A hash of the five-tuple; ports have weights by the capacity of the paths behind them (OFAN §5.2).
    Wcmp "wcmp" WEIGHTED;
    /// A random port for every packet (OFAN §6.1, RSQ).
    Random "random" | "rsq" PLAIN;
    /// Ports in turn, with a pointer for each group of ports: simple round robin (OFAN §6.1).
    Rr "rr" TURNS;
    /// Ports in turn, in an order that is drawn anew every five rounds (OFAN §3.2, Table 2).
    RrPermuted "rr-permuted" ORDERS;
    /// The port with the shortest queue (OFAN §6.1); the adaptive RoCE of the REPS paper's simulations (REPS §4.1).
    Jsq "jsq" | "adaptive-roce" PLAIN;
    /// A port whose queue is in the lowest class: below 5, 10 or 20 % of its limit, or above (OFAN §3.2, Table 2).
    Adaptive "adaptive" PLAIN;
    /// As `adaptive`, but a flow stays on its port until it pauses.
    AdaptiveFlowlet "adaptive-flowlet" PLAIN;
    /// A random port for every flowlet (Vanini et al., *Let It Flow*, NSDI 2017).
    LetFlow "letflow" PLAIN;
    /// For every flowlet the path to its leaf that is least congested, by what links and returning frames tell (*CONGA*, SIGCOMM 2014).
    Conga "conga" PLAIN;
    /// Flowcut: a flow takes the least loaded port whenever nothing of it is on its way, and its host pauses while a congested path drains; switches with hosts
    /// choose, the others hash (Flowcut §II-C, ingress only).
    FlowcutIngress "flowcut-ingress" PLAIN;
    /// Flowcut at every switch; acknowledgements go back by the switches that the data passed (Flowcut §II-A, full switch).
    FlowcutSwitch "flowcut-switch" PLAIN;
    /// As `ecmp`, but elephants that collide are given other paths (*Reunion*, Computer Networks 2025).
    Reunion "reunion" PLAIN;
    /// As `letflow`, but elephants that collide are given other paths.
    ReunionLetFlow "reunion+letflow" PLAIN;
    /// As `conga`, but elephants that collide are given other paths.
    ReunionConga "reunion+conga" PLAIN;
    /// Ports in turn, with a pointer for each destination edge switch or pod and class of frames, and weights (OFAN §7).
    Ofan "ofan" OFAN;
    /// OFAN without weights: all ports that lead to the destination count the same (OFAN §F.4).
    OfanFib "ofan-fib" OFAN_FIB;
    /// OFAN whose pointers begin at the shortest queue and take the ports in their own order (OFAN §F.4).
    OfanShortest "ofan-shortest" OFAN_SHORTEST;
    /// In a dragonfly: over a random third group, packet by packet (Kim et al., ISCA 2008, VAL).
    Valiant "valiant" WAYS;
    /// In a dragonfly: over a random third group where the shorter queue there outweighs the longer way (Kim et al., ISCA 2008, UGAL-L).
    Ugal "ugal" WAYS;
}

/// What a scheme needs in the tables of a switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// What has a pointer.
    pub pointers: Pointers,
    /// Orders of its ports that a group keeps.
    pub orders: u8,
    /// Whether these orders are random.
    pub shuffled: bool,
    /// Whether pointers begin at random.
    pub random_start: bool,
    /// Whether ports have weights.
    pub weighted: bool,
    /// Whether a group keeps as many places as it can where its ports change.
    pub resilient: bool,
    /// Whether groups know how far their hosts are; such schemes need a fabric of [`Groups`].
    pub ways: bool,
}

/// What a scheme's memory depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Switches with hosts.
    pub leaves: u32,
    /// Most ports of such a switch that lead to switches.
    pub uplinks: u32,
}

/// What has a pointer of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pointers {
    /// Nothing.
    #[default]
    None,
    /// A set of ports.
    Ports,
    /// A destination and a class of frames.
    Destination,
}

/// Orders that `rr-permuted` keeps for a group: each switch goes through them in an order of its own.
const ORDERS: u8 = 64;

impl Layout {
    const PLAIN: Self = Self {
        pointers: Pointers::None,
        orders: 1,
        shuffled: false,
        random_start: false,
        weighted: false,
        resilient: false,
        ways: false,
    };
    const WAYS: Self = Self { ways: true, ..Self::PLAIN };
    const WEIGHTED: Self = Self { weighted: true, ..Self::PLAIN };
    const RESILIENT: Self = Self { resilient: true, ..Self::PLAIN };
    const TURNS: Self = Self { pointers: Pointers::Ports, random_start: true, ..Self::PLAIN };
    const ORDERS: Self = Self { orders: ORDERS, shuffled: true, ..Self::TURNS };
    const OFAN_SHORTEST: Self = Self { pointers: Pointers::Destination, ..Self::PLAIN };
    const OFAN_FIB: Self = Self { shuffled: true, random_start: true, ..Self::OFAN_SHORTEST };
    const OFAN: Self = Self { weighted: true, ..Self::OFAN_FIB };
}

impl Scheme {
    /// Whether a port follows from the five-tuple alone.
    #[inline(always)]
    pub const fn hashes(self) -> bool {
        matches!(self, Self::Ecmp | Self::EcmpResilient | Self::Wcmp)
    }

    /// Whether it goes by the groups of a dragonfly.
    #[inline(always)]
    pub const fn needs_groups(self) -> bool {
        matches!(self, Self::Valiant | Self::Ugal)
    }

    /// Those that run in any fabric.
    pub fn anywhere() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|scheme| !scheme.needs_groups())
    }

    /// Whether it compares the queues behind all ports of a group.
    pub const fn looks_at_queues(self) -> bool {
        matches!(
            self,
            Self::Jsq
                | Self::Adaptive
                | Self::AdaptiveFlowlet
                | Self::OfanShortest
                | Self::Conga
                | Self::FlowcutIngress
                | Self::FlowcutSwitch
                | Self::ReunionConga
        )
    }

    /// Orders of its ports that the groups of a switch keep at most, with `switches` to go to.
    pub const fn most_orders(switches: usize) -> usize {
        switches + ORDERS as usize
    }

    /// Words of memory that a switch with this scheme has, pointers apart.
    pub const fn words(self, size: &Size) -> u32 {
        match self {
            Self::AdaptiveFlowlet | Self::LetFlow => FLOWLETS,
            Self::Conga => conga::words(size),
            Self::FlowcutIngress | Self::FlowcutSwitch => flowcut::WORDS,
            Self::Reunion => reunion::WORDS,
            Self::ReunionLetFlow => FLOWLETS + reunion::WORDS,
            Self::ReunionConga => conga::words(size) + reunion::WORDS,
            _ => 0,
        }
    }

    /// Whether its flows drain before they change their port.
    pub const fn drains(self) -> bool {
        matches!(self, Self::FlowcutIngress | Self::FlowcutSwitch)
    }

    /// Whether switches tell each other something about a frame: it has a [`Trail`], and [`recall`] finds its ports.
    #[inline(always)]
    pub const fn remembers(self) -> bool {
        matches!(self, Self::Conga | Self::FlowcutIngress | Self::FlowcutSwitch) || self.reunion_base().is_some()
    }

    /// Whether the kernel's switch has it. Reunion's calls need more stack than the kernel grants.
    pub const fn is_in_kernel(self) -> bool {
        self.reunion_base().is_none()
    }

    /// What chooses where Reunion does not; `None`: it is no Reunion.
    #[inline(always)]
    pub const fn reunion_base(self) -> Option<Self> {
        match self {
            Self::Reunion => Some(Self::Ecmp),
            Self::ReunionLetFlow => Some(Self::LetFlow),
            Self::ReunionConga => Some(Self::Conga),
            _ => None,
        }
    }

    /// Whether a port follows from the frame, its time and the routes alone.
    #[inline(always)]
    pub const fn is_stateless(self) -> bool {
        self.hashes() || matches!(self, Self::Random)
    }
}

#[expect(clippy::derivable_impls, reason = "the list above would have to mark a variant")]
impl Default for Scheme {
    fn default() -> Self {
        Self::Ecmp
    }
}

impl core::fmt::Display for Scheme {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.pad(self.name())
    }
}

/// A frame at the switch that it has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When.
    pub t_ps: u64,
    /// Digest of its five-tuple.
    pub flow: u64,
    /// The switch.
    pub switch: u32,
    /// The host that it is for.
    pub host: u32,
    /// The CRC of its header: its share of random choices.
    pub crc: u32,
    /// Whether it goes in the control class.
    pub control: bool,
    /// How it goes through a dragonfly: 0 is not decided yet, 1 on the shortest way, 2 and on to group 0 and on first.
    pub detour: u8,
}

impl Arrival {
    /// A frame for this host at the switch that it is at.
    #[inline(always)]
    pub fn of(frame: &Frame, host: u32) -> Self {
        Self {
            t_ps: frame.time_ps,
            flow: frame.flow,
            switch: frame.switch,
            host,
            crc: frame.crc,
            control: frame.control,
            detour: frame.detour,
        }
    }

    /// Random bits for this frame at this switch.
    //= docs/specs/switching.md#SWC-3 random choices
    #[inline(always)]
    fn random(&self, switch: &SwitchConfig) -> u64 {
        let crc = u64::from(self.crc).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mix(crc ^ self.t_ps ^ switch.salt.rotate_left(32))
    }
}

/// What waits at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Bytes of both classes.
    pub bytes: u64,
    /// Data bytes that may wait.
    pub limit: u32,
    /// Picoseconds that 1/256 byte takes at the present rate, in units of 2^-20.
    pub ps_per_unit: u64,
}

impl Waiting {
    /// Bytes that the port sends in this time at its present rate.
    #[inline(always)]
    fn bytes_in(&self, time_ps: u64) -> u64 {
        (time_ps << (PS_FRACTION_BITS - UNIT_BITS)) / self.ps_per_unit.max(1)
    }
}

/// What schemes read and write beside routes.
pub trait Forwarding: Routes {
    /// Words shared between CPUs.
    type Word: Word;
    /// Words of the frame's trail.
    type Note: Word;
    /// A word of the switches' memory: pointers, what ports and hosts are, and the tables of schemes.
    fn word(&self, index: u32) -> Option<&Self::Word>;
    /// What switches have told each other about the frame at hand; only where a scheme [remembers](Scheme::remembers).
    fn trail(&self) -> Option<&Trail<Self::Note>>;
    /// What a frame that came to `port` at `t_ps` would find there.
    fn waiting(&self, port: u32, t_ps: u64) -> Option<Waiting>;

    /// The number of a port among those of its switch that lead to switches.
    #[inline(always)]
    fn tag(&self, port: u32) -> Option<u32> {
        Some(self.word(port_words(port))?.load() as u32)
    }

    /// The switch that a port leads to; `None`: a host.
    #[inline(always)]
    fn far_end(&self, port: u32) -> Option<u32> {
        (self.word(port_words(port))?.load() >> FAR_END_SHIFT & 0xffff).checked_sub(1).map(|switch| switch as u32)
    }

    /// The number of a port among those of its switch that lead up, from 1 on; 0 of others.
    #[inline(always)]
    fn way(&self, port: u32) -> Option<u32> {
        Some((self.word(port_words(port))?.load() >> WAY_SHIFT) as u32)
    }

    /// The word in which a scheme measures a port's rate.
    #[inline(always)]
    fn rate_word(&self, port: u32) -> Option<&Self::Word> {
        self.word(port_words(port).wrapping_add(1))
    }

    /// The port at the far end of a port's cable, which leads back; `None` of a port to a host.
    #[inline(always)]
    fn back(&self, port: u32) -> Option<u32> {
        match self.word(port_words(port).wrapping_add(2))?.load() {
            0 => None,
            back => Some(back as u32 - 1),
        }
    }

    /// Runs [`least`]; the kernel's host makes it a function of its own, so that the verifier follows it once.
    #[inline(always)]
    fn least(&self, group: &Group, t_ps: u64, look: &Look) -> u32
    where
        Self: Sized,
    {
        least(self, group, t_ps, look, u32::MAX)
    }

    /// Runs [`score`]; a function of its own in the kernel for the same reason.
    #[inline(always)]
    fn score(&self, member: u32, t_ps: u64, look: &Look, place: u32) -> u64
    where
        Self: Sized,
    {
        score(self, member, t_ps, look, place)
    }
}

/// Where the words of a port begin, in fabrics whose schemes remember: its [tag](Forwarding::tag), then its
/// [rate](Forwarding::rate_word), then the port [back](Forwarding::back). Word 0 belongs to nobody.
#[inline(always)]
pub const fn port_words(port: u32) -> u32 {
    port.wrapping_mul(3).wrapping_add(1)
}

/// What a port's first word holds: its tag, its [far end](Forwarding::far_end), its [way](Forwarding::way).
pub const fn port_word(tag: u32, far_end: Option<u16>, way: u8) -> u64 {
    let far_end = match far_end {
        Some(switch) => switch as u64 + 1,
        None => 0,
    };
    tag as u64 | far_end << FAR_END_SHIFT | (way as u64) << WAY_SHIFT
}

const FAR_END_SHIFT: u32 = 32;
const WAY_SHIFT: u32 = 48;

/// The number of the leaf that a host is at.
#[inline(always)]
fn leaf<F: Forwarding>(tables: &F, switch: &SwitchConfig, host: u32) -> Option<u32> {
    Some(tables.word(switch.hosts.wrapping_add(host))?.load() as u32)
}

/// The port by which a frame leaves a switch whose scheme [remembers](Scheme::remembers): it reads and writes the frame's trail too.
///
/// # Errors
/// [`Cause::NoRoute`] when no port leads on, or a flow must wait before it takes another one.
#[inline(always)]
pub fn recall<F: Forwarding>(tables: &F, frame: &mut Frame, host: u32) -> Result<u32, Cause> {
    let switch = tables.switch(frame.switch).ok_or(Cause::NoRoute)?;
    match Scheme::from_number(switch.scheme) {
        Scheme::Conga => recall_conga(tables, frame, host),
        Scheme::FlowcutIngress | Scheme::FlowcutSwitch => recall_flowcut(tables, frame, host),
        scheme => {
            let base = scheme.reunion_base().ok_or(Cause::NoRoute)?;
            reunion::route(tables, switch, frame, host, base).ok_or(Cause::NoRoute)
        }
    }
}

/// [`recall`] at a switch with `conga`: one of its parts, each a function of its own in the kernel.
#[inline(always)]
pub fn recall_conga<F: Forwarding>(tables: &F, frame: &mut Frame, host: u32) -> Result<u32, Cause> {
    let switch = tables.switch(frame.switch).ok_or(Cause::NoRoute)?;
    conga::route(tables, switch, frame, host, None).ok_or(Cause::NoRoute)
}

/// [`recall`] at a switch with `flowcut-ingress` or `flowcut-switch`.
#[inline(always)]
pub fn recall_flowcut<F: Forwarding>(tables: &F, frame: &mut Frame, host: u32) -> Result<u32, Cause> {
    let switch = tables.switch(frame.switch).ok_or(Cause::NoRoute)?;
    flowcut::route(tables, switch, frame, host, switch.scheme == Scheme::FlowcutSwitch as u32)
}

/// Chooses the port by which a frame leaves a switch. `None` = no route.
//= docs/specs/switch.md#SW-4 routes and epochs
//= docs/specs/switching.md#SWC-1 a choice among equals
#[inline(always)]
pub fn choose<F: Forwarding>(tables: &F, frame: &Arrival) -> Option<Choice> {
    let switch = tables.switch(frame.switch)?;
    let scheme = Scheme::from_number(switch.scheme);
    if scheme.needs_groups() {
        return detour::choose(tables, switch, frame, scheme);
    }
    choose_by(tables, switch, frame, scheme)
}

/// As [`choose`], by a scheme that stays on the shortest ways.
#[inline(always)]
fn choose_by<F: Forwarding>(tables: &F, switch: &SwitchConfig, frame: &Arrival, scheme: Scheme) -> Option<Choice> {
    let group = tables.group(frame.t_ps, frame.switch, frame.host)?;
    let rank = match group.count {
        0 => return None,
        1 => 0,
        _ => rank(tables, switch, &group, frame, scheme)?,
    };
    Some(Choice { port: tables.member(group.first.wrapping_add(rank))?, rank, detour: frame.detour })
}

#[inline(always)]
fn rank<F: Forwarding>(
    tables: &F,
    switch: &SwitchConfig,
    group: &Group,
    frame: &Arrival,
    scheme: Scheme,
) -> Option<u32> {
    match scheme {
        Scheme::Ecmp | Scheme::EcmpResilient | Scheme::Wcmp => Some(hashed::rank(switch, group, frame.flow)),
        Scheme::Random | Scheme::Valiant | Scheme::Ugal => Some(hashed::random(switch, group, frame)),
        // [`recall`] finds their ports.
        Scheme::Conga
        | Scheme::FlowcutIngress
        | Scheme::FlowcutSwitch
        | Scheme::Reunion
        | Scheme::ReunionLetFlow
        | Scheme::ReunionConga => Some(hashed::rank(switch, group, frame.flow)),
        Scheme::Rr => rotation::simple(tables.word(group.pointer)?, group),
        Scheme::RrPermuted => rotation::permuted(tables.word(group.pointer)?, group, switch),
        Scheme::Jsq => Some(least_loaded(tables, switch, group, frame, Measure::Bytes)),
        Scheme::Adaptive => Some(least_loaded(tables, switch, group, frame, Measure::Class)),
        Scheme::AdaptiveFlowlet => {
            flowlet::rank(tables, switch, group, frame, |_| least_loaded(tables, switch, group, frame, Measure::Class))
        }
        Scheme::LetFlow => flowlet::rank(tables, switch, group, frame, |_| hashed::random(switch, group, frame)),
        Scheme::Ofan | Scheme::OfanFib => ofan::rank(tables, group, frame),
        Scheme::OfanShortest => ofan::rank_from_shortest(tables, switch, group, frame),
    }
}

/// The place of the least loaded port for this frame.
#[inline(always)]
fn least_loaded<F: Forwarding>(
    tables: &F,
    switch: &SwitchConfig,
    group: &Group,
    frame: &Arrival,
    measure: Measure,
) -> u32 {
    let look = Look { measure, random: (frame.random(switch) >> 32) as u32, row: 0 };
    tables.least(group, frame.t_ps, &look)
}

#[cfg(test)]
mod tests;

//! All schemes: a line each with its name, what it does and what it needs.

use super::layout::{Layout, ORDERS};
#[cfg(doc)]
use crate::trail::Trail;

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
    /// Ports in turn, with a pointer for each group of ports and class of frames: simple round robin (OFAN §6.1).
    Rr "rr" TURNS;
    /// Ports in turn, in an order that is drawn anew every five rounds (OFAN §3.2, Table 2).
    RrPermuted "rr-permuted" ORDERS;
    /// The port with the shortest queue (OFAN §6.1); the adaptive RoCE of the REPS paper's simulations (REPS §4.1).
    Jsq "jsq" | "adaptive-roce" PLAIN;
    /// The shortest of two random queues and of the one that was taken last (*DRILL*, SIGCOMM 2017).
    Drill "drill" TURNS;
    /// A port whose queue is in the lowest class: below 5, 10 or 20 % of its limit, or above (OFAN §3.2, Table 2).
    Adaptive "adaptive" PLAIN;
    /// As `adaptive`, but a flow stays on its port until it pauses.
    AdaptiveFlowlet "adaptive-flowlet" PLAIN;
    /// A random port for every flowlet (Vanini et al., *Let It Flow*, NSDI 2017).
    LetFlow "letflow" PLAIN;
    /// For every flowlet the path to its leaf that is least congested, by what links and returning frames tell (*CONGA*, SIGCOMM 2014).
    Conga "conga" PLAIN;
    /// A flow whose packets are late takes another path, which its destination's switch hides by holding packets until those before
    /// them have come (*ConWeave*, SIGCOMM 2023).
    ConWeave "conweave" PLAIN;
    /// Flowcut: a flow takes the least loaded port whenever nothing of it is on its way, and its host pauses while a congested path drains; switches with hosts
    /// choose, the others hash (Flowcut §II-C, ingress only).
    FlowcutIngress "flowcut-ingress" WAYS;
    /// Flowcut at every switch; acknowledgements go back by the switches that the data passed (Flowcut §II-A, full switch).
    FlowcutSwitch "flowcut-switch" WAYS;
    /// As `ecmp`, but elephants that collide are given other paths (*Reunion*, Computer Networks 2025).
    Reunion "reunion" PLAIN;
    /// As `letflow`, but elephants that collide are given other paths.
    ReunionLetFlow "reunion+letflow" PLAIN;
    /// As `conga`, but elephants that collide are given other paths.
    ReunionConga "reunion+conga" PLAIN;
    /// As `conweave`, but elephants that collide are given other paths.
    ReunionConWeave "reunion+conweave" PLAIN;
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

    /// The file of `docs/specs` that states its rules, without the suffix.
    pub const fn spec(self) -> &'static str {
        match self {
            Self::FlowcutIngress | Self::FlowcutSwitch => "flowcut-switch",
            Self::ConWeave => "conweave",
            scheme if scheme.reunion_base().is_some() => "reunion",
            _ => "switching",
        }
    }

    /// Whether its flows drain before they change their port.
    pub const fn drains(self) -> bool {
        matches!(self, Self::FlowcutIngress | Self::FlowcutSwitch)
    }

    /// Whether switches tell each other something about a frame: it has a [`Trail`], and [`recall`](super::recall()) finds its ports.
    #[inline(always)]
    pub const fn remembers(self) -> bool {
        matches!(self, Self::Conga | Self::ConWeave | Self::FlowcutIngress | Self::FlowcutSwitch)
            || self.reunion_base().is_some()
    }

    /// Whether the kernel's switch has it: a program cannot hold packets as ConWeave does.
    pub const fn is_in_kernel(self) -> bool {
        !self.holds()
    }

    /// Whether the switches with hosts hold packets until those before them have come.
    #[inline(always)]
    pub const fn holds(self) -> bool {
        matches!(self, Self::ConWeave | Self::ReunionConWeave)
    }

    /// Whether switches send each other frames of their own.
    pub const fn sends(self) -> bool {
        self.holds() || self.reunion_base().is_some()
    }

    /// The scheme that gives ports to the flows that Reunion leaves alone; `None` for schemes other than Reunion.
    #[inline(always)]
    pub const fn reunion_base(self) -> Option<Self> {
        match self {
            Self::Reunion => Some(Self::Ecmp),
            Self::ReunionLetFlow => Some(Self::LetFlow),
            Self::ReunionConga => Some(Self::Conga),
            Self::ReunionConWeave => Some(Self::ConWeave),
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

//! All schemes: a line each with its name, description and layout.

use super::layout::{Layout, ORDERS};
#[cfg(doc)]
use crate::trail::Trail;

/// Generates [`Scheme`] from one list: description, variant, name, alias, layout.
macro_rules! schemes {
    ($($(#[doc = $about:literal])+ $variant:ident $name:literal $(| $alias:literal)? $layout:ident;)+) => {
        /// The scheme that chooses a frame's port among those of equal cost.
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
            /// All schemes, in the order of their numbers.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// Returns its name in scenarios and on the command line.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// Returns its other name.
            pub const fn alias(self) -> Option<&'static str> {
                match self {
                    $($(Self::$variant => Some($alias),)?)+
                    _ => None,
                }
            }

            /// Returns its description.
            pub const fn about(self) -> &'static str {
                match self {
                    $(Self::$variant => concat!($($about),+).trim_ascii(),)+
                }
            }

            /// Returns what it needs in the tables.
            pub const fn layout(self) -> Layout {
                match self {
                    $(Self::$variant => Layout::$layout,)+
                }
            }

            /// Returns the scheme with this number; [`Scheme::Ecmp`] for unknown ones.
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
    /// A hash of the five-tuple; a leaving port moves its own flows only (resilient hashing).
    EcmpResilient "ecmp-resilient" RESILIENT;
    /// A hash of the five-tuple; ports are weighted by their paths' capacity (OFAN §5.2).
    Wcmp "wcmp" WEIGHTED;
    /// A random port for every packet (OFAN §6.1, RSQ).
    Random "random" | "rsq" PLAIN;
    /// Round robin by a pointer per group of ports and class of frames (OFAN §6.1).
    Rr "rr" TURNS;
    /// Ports in turn, in a random order that changes every five rounds (OFAN §3.2, Table 2).
    RrPermuted "rr-permuted" ORDERS;
    /// The port with the shortest queue (OFAN §6.1); adaptive RoCE of the REPS paper (REPS §4.1).
    Jsq "jsq" | "adaptive-roce" PLAIN;
    /// The shortest of two random queues and the last choice (*DRILL*, SIGCOMM 2017).
    Drill "drill" TURNS;
    /// A port of the lowest queue class: below 5, 10 or 20 % of the limit, or above (OFAN, Table
    /// 2).
    Adaptive "adaptive" PLAIN;
    /// As `adaptive`, but a flow stays on its port until it pauses.
    AdaptiveFlowlet "adaptive-flowlet" PLAIN;
    /// A random port for every flowlet (Vanini et al., *Let It Flow*, NSDI 2017).
    LetFlow "letflow" PLAIN;
    /// For every flowlet the least congested path, by feedback (*CONGA*, SIGCOMM 2014).
    Conga "conga" PLAIN;
    /// Reroutes flows with late packets; the destination's switch restores the order by holding
    /// packets (*ConWeave*, SIGCOMM 2023).
    ConWeave "conweave" PLAIN;
    /// Flowcut: a flow takes the least loaded port when none of its packets is in flight, and its
    /// host pauses while a congested path drains; switches with hosts choose, others hash (Flowcut
    /// §II-C).
    FlowcutIngress "flowcut-ingress" HOPS;
    /// Flowcut at every switch; replies return as the data came (Flowcut §II-A, full switch).
    FlowcutSwitch "flowcut-switch" HOPS;
    /// As `ecmp`, but colliding elephants are rerouted (*Reunion*, Computer Networks 2025).
    Reunion "reunion" PLAIN;
    /// As `letflow`, but colliding elephants are rerouted.
    ReunionLetFlow "reunion+letflow" PLAIN;
    /// As `conga`, but colliding elephants are rerouted.
    ReunionConga "reunion+conga" PLAIN;
    /// As `conweave`, but colliding elephants are rerouted.
    ReunionConWeave "reunion+conweave" PLAIN;
    /// Ports in turn, by a pointer per destination switch or pod and class, and weights (OFAN §7).
    Ofan "ofan" OFAN;
    /// OFAN without weights: all ports toward the destination are equal (OFAN §F.4).
    OfanFib "ofan-fib" OFAN_FIB;
    /// OFAN from the shortest queue on, with the ports in their given order (OFAN §F.4).
    OfanShortest "ofan-shortest" OFAN_SHORTEST;
    /// In a dragonfly: over a random third group, packet by packet (Kim et al., ISCA 2008, VAL).
    Valiant "valiant" HOPS;
    /// In a dragonfly: over a random third group where that has less queue times links (Kim et al.,
    /// ISCA 2008, UGAL-L).
    Ugal "ugal" HOPS;
}

impl Scheme {
    /// Returns whether the port depends on the five-tuple alone.
    #[inline(always)]
    pub const fn hashes(self) -> bool {
        matches!(self, Self::Ecmp | Self::EcmpResilient | Self::Wcmp)
    }

    /// Returns whether it needs the groups of a dragonfly.
    #[inline(always)]
    pub const fn needs_groups(self) -> bool {
        matches!(self, Self::Valiant | Self::Ugal)
    }

    /// Returns the schemes that run in any fabric.
    pub fn anywhere() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|scheme| !scheme.needs_groups())
    }

    /// Returns whether it compares the queues of all ports of a group.
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

    /// Returns the maximum number of orders of a switch's groups, with `switches` destinations.
    pub const fn most_orders(switches: usize) -> usize {
        switches + ORDERS as usize
    }

    /// Returns the file of `docs/specs` with its rules, without suffix.
    pub const fn spec(self) -> &'static str {
        match self {
            Self::FlowcutIngress | Self::FlowcutSwitch => "flowcut-switch",
            Self::ConWeave => "conweave",
            scheme if scheme.reunion_base().is_some() => "reunion",
            _ => "switching",
        }
    }

    /// Returns whether flows drain before they change their port.
    pub const fn drains(self) -> bool {
        matches!(self, Self::FlowcutIngress | Self::FlowcutSwitch)
    }

    /// Returns whether frames have a [`Trail`], and [`route_by_trail`](super::route_by_trail()) finds their ports.
    #[inline(always)]
    pub const fn uses_trail(self) -> bool {
        matches!(self, Self::Conga | Self::ConWeave | Self::FlowcutIngress | Self::FlowcutSwitch)
            || self.reunion_base().is_some()
    }

    /// Returns whether the kernel's switch has it: a program cannot hold packets as ConWeave does.
    pub const fn is_in_kernel(self) -> bool {
        !self.holds()
    }

    /// Returns whether switches with hosts hold packets to restore their order.
    #[inline(always)]
    pub const fn holds(self) -> bool {
        matches!(self, Self::ConWeave | Self::ReunionConWeave)
    }

    /// Returns whether switches send control frames.
    pub const fn sends(self) -> bool {
        self.holds() || self.reunion_base().is_some()
    }

    /// Returns Reunion's base, for flows that it does not reroute; `None` for other schemes.
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

    /// Returns whether the port depends on the frame, its time and the routes alone.
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

//! Counters of schemes: results have the counters of all schemes as a list of named values.

use alloc::vec::Vec;
use core::cell::RefCell;

use super::conweave::{self, State};
use super::counter::{Counter, CounterSource};
use super::list::Scheme;
use super::{flowcut, reunion};
use crate::routes::SwitchConfig;

/// The condition for a scheme to have counters, and these.
type Counters = (fn(Scheme) -> bool, &'static [Counter]);

/// All counters, in the order of results.
static COUNTERS: [Counters; 3] = [
    (Scheme::drains, flowcut::COUNTERS),
    (|scheme| scheme.reunion_base().is_some(), reunion::COUNTERS),
    (Scheme::holds, conweave::COUNTERS),
];

impl Counter {
    /// Returns the counters of all schemes, in the order of results.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        COUNTERS.iter().flat_map(|(_, counters)| *counters)
    }

    fn with(&self, one: u64, other: u64) -> u64 {
        if self.is_max { one.max(other) } else { one + other }
    }
}

/// The counters' values of a fabric.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SchemeCounters(Vec<(&'static Counter, u64)>);

impl SchemeCounters {
    /// Reads the counters of these switches. `words` reads the switches' memory.
    pub fn of<'a>(
        switches: impl Iterator<Item = (&'a SwitchConfig, Option<&'a RefCell<State>>)> + Clone,
        words: &dyn Fn(u32) -> u64,
    ) -> Self {
        let of = |has: fn(Scheme) -> bool, counter: &Counter| {
            let have = switches.clone().filter(|(switch, _)| has(Scheme::from_number(switch.scheme)));
            let values = have.map(|(switch, state)| (counter.of)(&CounterSource { switch, words, state }));
            values.reduce(|one, other| counter.with(one, other))
        };
        let all = COUNTERS.iter().flat_map(|(has, counters)| counters.iter().map(|counter| (*has, counter)));
        Self(all.filter_map(|(has, counter)| Some((counter, of(has, counter)?))).collect())
    }

    /// Returns the counter with this key; `None` where no switch has it.
    pub fn get(&self, key: &str) -> Option<u64> {
        self.0.iter().find(|(counter, _)| counter.key == key).map(|(_, value)| *value)
    }
}

/// An object with the counters' keys; ignores others, so that it can be flattened.
#[cfg(feature = "settings")]
mod written {
    use super::{Counter, SchemeCounters};
    use alloc::borrow::Cow;
    use alloc::string::String;
    use alloc::vec::Vec;
    use core::fmt;
    use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
    use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
    use serde::ser::{Serialize, Serializer};

    impl Serialize for SchemeCounters {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_map(self.0.iter().map(|(counter, value)| (counter.key, value)))
        }
    }

    impl<'de> Deserialize<'de> for SchemeCounters {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct Keys;
            impl<'de> Visitor<'de> for Keys {
                type Value = SchemeCounters;

                fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str("an object with the counters of switches")
                }

                fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<SchemeCounters, A::Error> {
                    let mut values = Vec::new();
                    while let Some(key) = map.next_key::<String>()? {
                        match Counter::all().find(|counter| counter.key == key) {
                            Some(counter) => values.push((counter, map.next_value()?)),
                            None => drop(map.next_value::<IgnoredAny>()?),
                        }
                    }
                    Ok(SchemeCounters(values))
                }
            }
            deserializer.deserialize_map(Keys)
        }
    }

    impl JsonSchema for SchemeCounters {
        fn inline_schema() -> bool {
            true
        }

        fn schema_name() -> Cow<'static, str> {
            "SchemeCounters".into()
        }

        fn json_schema(generator: &mut SchemaGenerator) -> Schema {
            let mut properties = json_schema!({});
            for counter in Counter::all() {
                let mut one = u64::json_schema(generator);
                one.insert("description".into(), counter.about.into());
                properties.insert(counter.key.into(), one.into());
            }
            json_schema!({ "type": "object", "properties": properties })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::assert_eq;

    /// The counters of two switches with ConWeave, the first of which has held `held` packets in `queues` queues, and of one without.
    fn counted(held: u64, queues: u64) -> SchemeCounters {
        let switches = [Scheme::ConWeave, Scheme::ConWeave, Scheme::Ecmp].map(|scheme| SwitchConfig::new(0, scheme));
        let states =
            [(held, queues), (10, 40), (7, 700)].map(|(held, queues)| RefCell::new(State::that_held(held, queues)));
        SchemeCounters::of(switches.iter().zip(states.iter().map(Some)), &|_| 0)
    }

    //= docs/specs/conweave.md#CWV-20 counts
    #[test]
    fn counts_of_switches_are_added_and_maxima_are_combined() {
        let of = |counted: &SchemeCounters| ["conweave_held", "conweave_queues"].map(|key| counted.get(key));
        assert_eq!(of(&counted(3, 70)), [Some(13), Some(70)]);
        assert_eq!(of(&counted(3, 7)), [Some(13), Some(40)]);
        assert_eq!(counted(3, 7).get("stuck"), None, "no switch has Reunion");
    }

    #[test]
    fn no_two_counters_have_one_key() {
        let mut keys: Vec<_> = Counter::all().map(|counter| counter.key).collect();
        keys.sort_unstable();
        let all = keys.clone();
        keys.dedup();
        assert_eq!((keys.len(), keys), (14, all));
    }

    #[cfg(feature = "settings")]
    #[test]
    fn what_is_written_is_read_among_other_keys() {
        use serde::Deserialize as _;
        use serde::de::value::{Error, MapDeserializer};
        use std::vec;
        let written = vec![("fct_us", 5_u64), ("conweave_held", 13), ("rerouted", 2)];
        let read = SchemeCounters::deserialize(MapDeserializer::<_, Error>::new(written.into_iter())).unwrap();
        assert_eq!(["fct_us", "conweave_held", "rerouted"].map(|key| read.get(key)), [None, Some(13), Some(2)]);
    }
}

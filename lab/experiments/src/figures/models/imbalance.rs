//! How evenly entropy values are spread over uplinks (REPS appendix B).

use rand_core::RngCore;
use spray_core::rng::{Rng, stream};
use spray_pipeline::flow_hash::{FlowHash, HashFunction, Key, place};

use super::parameters::Parameters;
use crate::figures::measures::{Measures, named};

/// Returns the fullest uplink's excess over the mean: `evs` values of `flows`, `random` or `hash`.
pub(super) fn imbalance(parameters: &Parameters<'_>, seed: u64) -> Result<Measures, String> {
    let (evs, flows, uplinks) = (parameters.count("evs")?, parameters.count("flows")?, parameters.count("uplinks")?);
    let name = parameters.text("hash")?;
    let function = match name {
        "random" => None,
        "ideal" => Some(HashFunction::Ideal),
        "crc16" => Some(HashFunction::Crc16),
        "crc32" => Some(HashFunction::Crc32),
        "xor" => Some(HashFunction::Xor),
        _ => return Err(format!("there is no hash `{name}`")),
    };
    let mut rng = stream(seed, STREAM);
    let mut loads = vec![0u64; uplinks.max(1)];
    let switch = rng.next_u32();
    for flow in 0..flows {
        let pair = addresses(flow, &mut rng);
        for ev in 0..evs {
            let uplink = match function {
                None => rng.next_u32() % loads.len() as u32,
                Some(function) => {
                    let key = Key { addresses: pair, ports: (FIRST_PORT + ev as u32) << 16 | PORT, label: 0 };
                    let digest = FlowHash { function, ..FlowHash::default() }.digest(&key);
                    place(function, digest ^ function.seed(switch), 0, loads.len() as u32)
                }
            };
            loads[uplink as usize] += 1;
        }
    }
    let mean = (evs * flows) as f64 / loads.len() as f64;
    let most = loads.iter().copied().max().unwrap_or(0) as f64;
    Ok(named([("imbalance_percent", 100.0 * (most / mean.max(f64::MIN_POSITIVE) - 1.0))]))
}

/// Returns two hosts of 10.0.0.0/8, with another sender for each flow.
fn addresses(flow: usize, rng: &mut Rng) -> u64 {
    let host = |number: u32| u64::from((0x0a00_0000 | (number & 0x00ff_ffff)).swap_bytes());
    host(flow as u32 + 1) | host(rng.next_u32()) << 32
}

/// First source port, which carries the entropy value, and the fixed destination port.
const FIRST_PORT: u32 = 1;
const PORT: u32 = 4791;
const STREAM: u64 = 0x0065_7673_0000;

#[cfg(test)]
mod tests {
    use super::super::run;

    fn of(hash: &str, evs: u32, flows: u32) -> f64 {
        let text = format!("evs = {evs}\nflows = {flows}\nuplinks = 32\nhash = \"{hash}\"");
        let one = |seed| run("imbalance", &toml::from_str(&text).unwrap(), seed).unwrap()["imbalance_percent"];
        (1..6).map(one).sum::<f64>() / 5.0
    }

    #[test]
    fn many_values_are_balanced_and_few_are_not() {
        for hash in ["random", "ideal"] {
            assert!(of(hash, 65_535, 32) < 1.0 && of(hash, 32, 1) > 100.0 && of(hash, 256, 32) > 5.0, "{hash}");
        }
        // One value on one of 32 uplinks: 32 times the mean.
        assert_eq!(of("ideal", 1, 1), 3100.0);
    }

    #[test]
    fn a_crc_spreads_all_ports_of_a_flow_evenly() {
        // The hash is linear and of full rank in the 16 bits of the port: 2^16 ports give 2^16
        // values, once each.
        assert!(of("crc16", 65_535, 1) < 0.1);
        assert!(
            run("imbalance", &toml::from_str("evs = 1\nflows = 1\nuplinks = 1\nhash = \"md5\"").unwrap(), 1).is_err()
        );
    }
}

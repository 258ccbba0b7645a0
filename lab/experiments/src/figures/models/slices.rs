//! Rate of a flow among others on random paths (Reunion §4.4, equation 2).

use spray_core::rng::{below, stream};

use super::parameters::Parameters;
use crate::figures::measures::{Measures, named};

/// `flows` choose `links` at random; a link carries `per_link` flows at full rate.
///
/// Returns a flow's mean rate in per cent: `written` (equation 2), `binomial` (text), `drawn`.
pub(super) fn slices(parameters: &Parameters<'_>, seed: u64) -> Result<Measures, String> {
    let (flows, links, per_link) =
        (parameters.count("flows")?, parameters.count("links")?, parameters.count("per_link")?);
    if flows == 0 || links == 0 || per_link == 0 {
        return Err("flows, links and per_link must be above 0".into());
    }
    let [written, binomial] = [written, binomial].map(|share| 100.0 * share(flows, links, per_link));
    let drawn = 100.0 * drawn([flows, links, per_link], seed);
    Ok(named([("written", written), ("binomial", binomial), ("drawn", drawn)]))
}

fn choose(n: usize, k: usize) -> f64 {
    (1..=k).fold(1.0, |ways, i| ways * (n + 1 - i) as f64 / i as f64)
}

/// Equation 2 as printed.
fn written(flows: usize, links: usize, per_link: usize) -> f64 {
    let others = flows - 1;
    let share = |i: usize| if i < per_link { 1.0 } else { per_link as f64 / i as f64 };
    (0..=others).map(|i| choose(others, i) * share(i)).sum::<f64>() / (links as f64).powi(others as i32)
}

/// Equation 2 with the chance that flows miss the link, and with the flow itself.
fn binomial(flows: usize, links: usize, per_link: usize) -> f64 {
    let (others, hit) = (flows - 1, 1.0 / links as f64);
    let chance = |i: usize| choose(others, i) * hit.powi(i as i32) * (1.0 - hit).powi((others - i) as i32);
    (0..=others).map(|i| chance(i) * (per_link as f64 / (i + 1) as f64).min(1.0)).sum()
}

fn drawn([flows, links, per_link]: [usize; 3], seed: u64) -> f64 {
    let mut rng = stream(seed, STREAM);
    let (mut sum, mut loads) = (0.0, vec![0usize; links]);
    for _ in 0..DRAWS {
        loads.fill(0);
        for _ in 0..flows {
            loads[below(links, &mut rng)] += 1;
        }
        sum += loads.iter().map(|load| (*load).min(per_link) as f64).sum::<f64>() / flows as f64;
    }
    sum / DRAWS as f64
}

const DRAWS: usize = 2_000;
const STREAM: u64 = 0x0073_6c69_6365;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_agree_with_the_binomial_form_and_not_with_the_written_one() {
        for (flows, links, per_link) in [(8, 8, 1), (16, 8, 2), (32, 8, 4)] {
            let (exact, drawn) = (binomial(flows, links, per_link), drawn([flows, links, per_link], 1));
            assert!((exact / drawn - 1.0).abs() < 0.01, "{exact} {drawn}");
        }
        // Two flows, two links: separate with probability 1/2, and at half of their rate otherwise.
        assert!((binomial(2, 2, 1) - 0.75).abs() < 1e-12);
        assert!(written(8, 8, 1) < 0.001);
    }
}

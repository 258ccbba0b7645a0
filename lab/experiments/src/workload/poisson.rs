//! Open-loop traffic, specified in `docs/specs/open-loop.md` (`OL-n`).

use rand_core::RngCore;
use spray_core::rng::stream;
use spray_fabric::Network;

use super::partners::Choice;
use super::streams::PATTERN_STREAM;
use super::{Distribution, Flow};

/// Messages from every host as a Poisson process.
#[derive(Clone, Debug, PartialEq)]
pub struct Poisson {
    /// Payload sent by a host, as a share of its link's rate.
    pub load: f64,
    pub sizes: Distribution,
    pub cross_leaf: bool,
    pub start_ps: u64,
    pub until_ps: u64,
}

impl Poisson {
    /// Returns the messages among `members`, by arrival time.
    //= docs/specs/open-loop.md#OL-2 follow from the seed alone
    pub(super) fn flows(&self, network: &Network, members: &[usize], seed: u64) -> Vec<Flow> {
        let choice = Choice::new(network, members, self.cross_leaf);
        let mut flows = Vec::new();
        for (member, src) in members.iter().enumerate() {
            let mut rng = stream(seed, PATTERN_STREAM + 1 + *src as u64);
            let gap_ps = self.gap_ps(network, *src);
            let mut at_ps = self.start_ps as f64;
            loop {
                //= docs/specs/open-loop.md#OL-1 times between arrivals
                let uniform = (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
                at_ps -= libm::log1p(-uniform) * gap_ps;
                if at_ps >= self.until_ps as f64 {
                    break;
                }
                let dst = choice.draw(member, rng.next_u64());
                let bytes = self.sizes.draw(rng.next_u64());
                flows.push(Flow { src: *src, dst, bytes, start_ps: at_ps as u64, ..Flow::default() });
            }
        }
        flows.sort_by_key(|flow| (flow.start_ps, flow.src));
        flows.iter_mut().enumerate().for_each(|(number, flow)| flow.flow = number as u32);
        flows
    }

    pub fn expected(&self, network: &Network, members: &[usize]) -> f64 {
        let span_ps = self.until_ps.saturating_sub(self.start_ps) as f64;
        members.iter().map(|host| span_ps / self.gap_ps(network, *host)).sum()
    }

    /// Returns the mean time between arrivals at a host.
    //= docs/specs/open-loop.md#OL-1 times between arrivals
    fn gap_ps(&self, network: &Network, host: usize) -> f64 {
        let rate_bps = network.links[network.uplink(host)].rate_bps as f64;
        self.sizes.mean_bytes() * 8e12 / (self.load * rate_bps)
    }
}

#[cfg(test)]
mod tests;

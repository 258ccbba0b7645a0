//! A run with periodic inspection, for tests.

use super::*;

impl<W: Observer + Clone> Engine<'_, W> {
    /// As [`run`](Self::run); calls `inspect` periodically with the time and the bytes waiting by
    /// link, except at hosts.
    pub(in super::super) fn run_inspected(mut self, every_ps: u64, inspect: &mut dyn FnMut(u64, &[u64])) -> SimOutcome {
        self.special(0);
        let mut at_ps = 0;
        loop {
            let special_ps = self.next_special_ps;
            self.next_special_ps = special_ps.min(at_ps);
            let (next_ps, open) = self.windows();
            self.next_special_ps = special_ps;
            if open == 0 || next_ps == NEVER {
                break;
            }
            while at_ps < special_ps && at_ps <= next_ps {
                inspect(at_ps, &self.queue_state(at_ps));
                at_ps += every_ps;
            }
            if next_ps >= special_ps && !self.special_until(next_ps) {
                break;
            }
        }
        self.outcome()
    }

    fn queue_state(&self, now_ps: u64) -> Vec<u64> {
        let waiting = |(number, link): (usize, &spray_fabric::Link)| {
            let PortPlace { part, place } = self.common.locate(number);
            match link.from {
                Node::Host(_) => 0,
                Node::Switch(_) => self.parts[part].net.switches.ports[place].waiting_bytes(now_ps),
            }
        };
        self.common.spec.network.links.iter().enumerate().map(waiting).collect()
    }
}

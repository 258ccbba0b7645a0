//! Transcriptions of the paper's rule (§II) and of the published artifact's, in floating point,
//! without loss, hops or timers.

use super::FlowcutConfig;
use super::FlowcutRule;
use crate::path::Ev;

/// A flowcut table of one flow.
pub(super) struct Model {
    simple: bool,
    ratio: f64,
    alpha: f64,
    trend_threshold: f64,
    trend_alpha: f64,
    r_min: f64,
    average: f64,
    previous: Option<f64>,
    trend: f64,
    stopped: bool,
    drained: bool,
    path: Option<Ev>,
    flight: usize,
    close: bool,
}

impl Model {
    pub(super) fn new(config: &FlowcutConfig, base_rtt_ps: u64) -> Self {
        let base_ps = base_rtt_ps as f64;
        let simple = config.rule == FlowcutRule::Simple;
        Self {
            simple,
            ratio: config.rtt_ratio.ppm() as f64 / 1e6,
            alpha: config.weight.ppm() as f64 / 1e6,
            trend_threshold: config.trend.ppm() as f64 / 1e6,
            trend_alpha: config.trend_weight.ppm() as f64 / 1e6,
            r_min: base_ps,
            average: if simple { base_ps } else { 1.0 },
            previous: None,
            trend: 0.0,
            stopped: false,
            drained: true,
            path: None,
            flight: 0,
            close: false,
        }
    }

    /// Offers a packet, with its path if it was sent. Returns whether it may be sent.
    pub(super) fn send(&mut self, path: Option<Ev>) -> bool {
        if self.stopped {
            return false;
        }
        // A NIC changes the path only after a drain.
        if !self.drained {
            assert_eq!(path, self.path);
        }
        (self.path, self.flight, self.drained) = (path, self.flight + 1, false);
        true
    }

    /// Processes an ACK after which `flight` packets are in flight.
    pub(super) fn ack(&mut self, rtt_ps: u64, flight: usize) {
        let rtt = rtt_ps as f64;
        self.r_min = self.r_min.min(rtt);
        self.flight = flight;
        let congested = if self.simple { self.simple_rule(rtt) } else { self.paper_rule(rtt / self.r_min) };
        if congested {
            self.stopped = true;
        }
        if flight == 0 {
            (self.drained, self.stopped) = (self.stopped, false);
            if !self.simple {
                // The entry is deleted.
                (self.average, self.previous, self.trend) = (1.0, None, 0.0);
            }
        }
    }

    fn simple_rule(&mut self, rtt: f64) -> bool {
        self.average = self.alpha * rtt + (1.0 - self.alpha) * self.average;
        self.close = ((self.average / (self.r_min * self.ratio)) - 1.0).abs() < 2e-3;
        self.average > self.r_min * self.ratio
    }

    fn paper_rule(&mut self, normalised: f64) -> bool {
        self.average = self.alpha * normalised + (1.0 - self.alpha) * self.average;
        if let Some(previous) = self.previous {
            self.trend = self.trend_alpha * (normalised - previous) + (1.0 - self.trend_alpha) * self.trend;
        }
        self.previous = Some(normalised);
        let watches = self.trend_threshold > 0.0;
        self.close =
            (self.average - self.ratio).abs() < 1e-2 || (watches && (self.trend - self.trend_threshold).abs() < 2e-3);
        self.average > self.ratio || (watches && self.trend > self.trend_threshold)
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// Returns whether rounding could change the last decision.
    pub(super) fn is_close_call(&self) -> bool {
        self.close
    }
}

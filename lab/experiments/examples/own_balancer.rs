//! A user-defined balancer compared with `ecmp`, `ops` and `reps`, on a fabric in which a cable
//! fails silently: in the simulator, and as root also with packets between network namespaces.
//!
//! `cargo run --release -p spray-experiments --example own_balancer`

use std::path::Path;
use std::sync::atomic::AtomicBool;

use spray_core::event::Publisher;
use spray_core::path::{AckInfo, Balancer, BalancerKind, CustomBalancer, Ev, LossInfo, Now, SendInfo, draw};
use spray_core::rng::Rng;
use spray_experiments::engine::Engine;
use spray_experiments::results::FlowFigures;
use spray_experiments::scenario::Scenario;
use spray_experiments::{sim::Sim, xdp::Xdp};

/// Keeps a path until a packet is marked or lost.
#[derive(Debug, Default)]
struct Sticky {
    ev: Option<Ev>,
}

impl Balancer for Sticky {
    fn next_ev(&mut self, now: Now<'_>, _packet: &SendInfo, rng: &mut Rng) -> Ev {
        *self.ev.get_or_insert_with(|| draw(now.path.evs, rng))
    }

    fn on_ack(&mut self, _now: Now<'_>, ack: &AckInfo, _publisher: &mut dyn Publisher) {
        self.ev = self.ev.filter(|ev| *ev != ack.ev || !ack.marked);
    }

    fn on_loss(&mut self, _now: Now<'_>, loss: &LossInfo, _publisher: &mut dyn Publisher) {
        self.ev = self.ev.filter(|ev| *ev != loss.ev);
    }
}

const STICKY: CustomBalancer = CustomBalancer { name: "sticky", make: &|_, _| Box::<Sticky>::default() };

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut scenario = Scenario::load(Path::new("tests/scenarios/demo-silent-drop.toml"))?;
    for engine in [&Sim::default() as &dyn Engine, &Xdp::default()] {
        for kind in [Some(BalancerKind::Ecmp), Some(BalancerKind::Ops), Some(BalancerKind::Reps), None] {
            scenario.own.balancer = if kind.is_none() { Some(STICKY) } else { None };
            let ready = engine.prepare(&scenario, &mut |_| ())?;
            let kind = kind.unwrap_or(BalancerKind::Ops);
            let result = ready.run(kind, 1, &mut |_| (), &AtomicBool::new(false))?;
            let summary = result.summary();
            let FlowFigures { flows_completed, flows_total, fct_mean_us, .. } = summary.flows;
            let (bound, mean_us) =
                (if flows_completed < flows_total { "> " } else { "" }, fct_mean_us.unwrap_or(f64::NAN));
            let flows = format!("{flows_completed} of {flows_total} flows");
            println!("{} {:6} {flows}, mean FCT {bound}{mean_us:.0} us", result.engine, result.balancer);
        }
    }
    Ok(())
}

//! `spray run --live`: a view of a run in the terminal, with keys that fail, slow and heal links and change the balancer of new flows.
//!
//! | file | content |
//! |---|---|
//! | `model` | what is shown, and what keys order |
//! | `view` | how it is drawn |
//! | `keys` | which key does what |
//! | `pace` | how fast the simulator's time goes |

mod keys;
mod model;
mod pace;
#[cfg(test)]
mod tests;
mod view;

use std::io::{IsTerminal, stdin, stdout};
use std::sync::Arc;
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event};
use spray_core::path::BalancerKind;
use spray_experiments::live::NewFlows;
use spray_experiments::scenario::Scenario;
use spray_fabric::live::{Answer, Operator, Order, Snapshot};
use spray_tools::failure::{Failure, Outcome};
use spray_tools::progress::now;
use spray_tools::stop::Stop;

use self::keys::{Key, read};
use self::model::Model;
use self::pace::Pace;
use self::view::Status;

/// Refuses to view several runs, and a terminal that is none.
pub fn check(runs: usize) -> Outcome {
    if runs > 1 {
        return Err(Failure::refused(format!(
            "`--live` shows one run and these are {runs}; choose one with --balancer, --seeds and --set"
        )));
    }
    if stdin().is_terminal() && stdout().is_terminal() {
        return Ok(());
    }
    Err(Failure::refused("`--live` needs a terminal for its keys and its view: leave it out, or run it without a pipe"))
}

/// The view of one run.
pub struct View<'a> {
    model: Model,
    /// Of an engine whose clock waits; `None` where it does not.
    pace: Option<Pace>,
    new_flows: Arc<NewFlows>,
    stop: &'a Stop,
    /// From the first look to the last.
    terminal: Option<DefaultTerminal>,
    /// The user has ended the run.
    ended: bool,
}

impl<'a> View<'a> {
    /// The view of a run of `scenario`. `waits` says whether the engine's clock waits while the view is drawn.
    pub fn new(scenario: &Scenario, (engine, waits): (&str, bool), job: (BalancerKind, u64), stop: &'a Stop) -> Self {
        let (pace, new_flows) = (waits.then(Pace::new), Arc::new(NewFlows::new(job.0)));
        Self { model: Model::new(scenario, engine, job), pace, new_flows, stop, terminal: None, ended: false }
    }

    /// The balancer that the view chooses for new flows.
    pub fn new_flows(&self) -> Arc<NewFlows> {
        Arc::clone(&self.new_flows)
    }

    fn status(&self) -> Status {
        let pace = self.pace.as_ref().map_or(String::new(), ToString::to_string);
        Status { new_flows: self.new_flows.get(), pace, has_pace: self.pace.is_some() }
    }

    /// Draws, on the terminal that the first look takes over. A terminal that fails ends the run, as its keys are gone.
    fn draw(&mut self) -> bool {
        if self.terminal.is_none() {
            self.terminal = ratatui::try_init().ok();
        }
        let status = self.status();
        let model = &self.model;
        self.terminal.as_mut().is_some_and(|terminal| terminal.draw(|frame| view::draw(frame, model, &status)).is_ok())
    }

    /// Takes the keys that are pressed within `wait`; returns what they order, and whether the run is to end.
    fn keys(&mut self, wait: Duration) -> (Vec<Order>, bool) {
        let (mut orders, until) = (Vec::new(), now() + wait);
        loop {
            let left = until.saturating_duration_since(now());
            match event::poll(left) {
                Ok(true) => {}
                Ok(false) => return (orders, false),
                Err(_) => return (orders, true),
            }
            let Ok(Event::Key(key)) = event::read() else { continue };
            match read(key) {
                Key::Act(action) => orders.extend(self.model.act(action, &self.new_flows)),
                Key::End => return (orders, true),
                Key::Interrupt => {
                    self.close();
                    self.stop.set();
                    return (orders, true);
                }
                key => self.pace.iter_mut().for_each(|pace| pace.on_key(key)),
            }
            self.draw();
        }
    }

    fn close(&mut self) {
        if self.terminal.take().is_some() {
            ratatui::restore();
        }
    }
}

impl Operator for View<'_> {
    fn look(&mut self, run: &Snapshot) -> Answer {
        self.model.take(run);
        self.ended |= !self.draw();
        if run.over {
            // Whoever has ended it has seen enough.
            while !self.ended && !matches!(event::read(), Ok(Event::Key(_)) | Err(_)) {}
            self.close();
            return Answer::default();
        }
        let now_ps = u64::try_from(run.now_ps).unwrap_or(0);
        loop {
            let (orders, ends) = self.keys(if self.pace.is_some() { pace::LOOK } else { Duration::ZERO });
            self.ended |= ends;
            let step_ps = self.pace.as_mut().map_or(Some(0), Pace::step_ps);
            if self.ended || !orders.is_empty() || step_ps.is_some() {
                let next_ps = now_ps.saturating_add(step_ps.unwrap_or(0));
                return Answer { orders, next_ps, stop: self.ended };
            }
        }
    }
}

impl Drop for View<'_> {
    fn drop(&mut self) {
        self.close();
    }
}

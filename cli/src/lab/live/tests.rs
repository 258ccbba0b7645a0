use std::path::Path;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use spray_core::path::BalancerKind;
use spray_experiments::live::NewFlows;
use spray_experiments::scenario::Scenario;
use spray_fabric::live::{HostNow, LinkNow, Order, Snapshot};
use spray_fabric::{LinkAction, LinkState, PortCounters};

use super::keys::{Key, read};
use super::model::{Action, Model, state};
use super::pace::Pace;
use super::view::{Status, draw};

const SCENARIO: &str = r#"
name = "live"
[topology]
kind = "leaf-spine"
leaves = 2
spines = 2
hosts_per_leaf = 2
host_gbps = 100
latency_us = 1
[workload]
kind = "cross-leaf-permutation"
bytes = "1 MiB"
[transport]
balancer = "reps"
"#;

fn scenario() -> Scenario {
    Scenario::parse(Path::new("live.toml"), SCENARIO).unwrap()
}

fn model() -> Model {
    Model::new(&scenario(), "sim", (BalancerKind::Reps, 1))
}

/// A look at which every host has received and every link has carried so many bytes.
fn look(at_us: i64, bytes: u64) -> Snapshot {
    let links = scenario().network.links.len();
    let counters = PortCounters { bytes, drops_silent: 7, ..PortCounters::default() };
    let state = LinkState { silent_drop: true, ..LinkState::UP };
    let link = LinkNow { waiting_bytes: 0, counters, state, can_change: true };
    let host = HostNow { received_bytes: bytes, sending: 1, frozen: 1, retransmits: 3 };
    Snapshot {
        now_ps: at_us * 1_000_000,
        hosts: vec![host; 4],
        links: vec![Some(link); links],
        arrived: 2,
        over: false,
    }
}

fn screen(model: &Model, (width, height): (u16, u16)) -> String {
    let status = Status { new_flows: BalancerKind::Ecmp, pace: "paused".into(), has_pace: true };
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, model, &status)).unwrap();
    terminal.backend().to_string()
}

/// 100 Gb/s is 12,500 bytes in a microsecond: rates are those of the last looks, and no link is faster than it is.
#[test]
fn rates_are_those_of_the_last_looks() {
    let mut model = model();
    for step in 0..40u64 {
        model.take(&look(step as i64, step.saturating_sub(20) * 12_500));
    }
    assert!((model.goodput_bps(0) / 1e9 - 100.0).abs() < 1e-6);
    assert_eq!(model.goodput.back(), Some(&400_000_000_000));
    assert_eq!(model.goodput.front(), Some(&0));
    let (row, fast) = (model.links[0].clone(), look(41, 1 << 40));
    assert!((model.link_bps(&row) / 1e9 - 100.0).abs() < 1e-6);
    model.take(&fast);
    assert_eq!(model.link_bps(&row), row.rate_bps as f64);
}

/// Keys concern both directions of the cable of the row that is selected.
#[test]
fn keys_order_what_they_say() {
    let (mut model, new_flows) = (model(), NewFlows::new(BalancerKind::Reps));
    model.take(&look(0, 0));
    let both = |name: &str| scenario().network.links_named(name).unwrap();
    assert_eq!(model.links[0].name, "leaf0->spine0");
    let apply = |name: &str, action| Some(Order::Apply { name: name.into(), links: both(name), action });
    assert_eq!(model.act(Action::Fail, &new_flows), apply("leaf0-spine0", LinkAction::SilentDrop));
    model.act(Action::Down(2), &new_flows);
    assert_eq!(model.act(Action::Slow, &new_flows), apply("leaf0-spine1", LinkAction::Rate { ppm: 250_000 }));
    assert_eq!(model.act(Action::Lose, &new_flows), apply("leaf0-spine1", LinkAction::Loss { ppm: 10_000 }));
    assert_eq!(model.act(Action::Heal, &new_flows), Some(Order::Heal { links: both("leaf0-spine1") }));
    assert!(model.note.contains("leaf0-spine1 is healthy"));
    // A link keeps a thousandth of its rate.
    let mut slow = look(1, 0);
    let link = slow.links[model.links[model.selected].link].as_mut().unwrap();
    link.state = LinkState { rate_ppm: 250_000 / 64, ..LinkState::UP };
    model.take(&slow);
    assert_eq!(model.act(Action::Slow, &new_flows), None);
    assert!(model.note.contains("would have 0.0976 % of its rate; allowed: at least 0.1 %"), "{}", model.note);
    model.act(Action::Down(1000), &new_flows);
    assert_eq!(model.selected, model.links.len() - 1);
    model.act(Action::Up(1000), &new_flows);
    assert_eq!(model.selected, 0);

    let mut played = look(1, 0);
    played.links[model.links[0].link].as_mut().unwrap().can_change = false;
    model.take(&played);
    assert_eq!(model.act(Action::Fail, &new_flows), None);
    assert!(model.note.contains("leads to a host"), "{}", model.note);
}

/// All balancers come, in a circle.
#[test]
fn balancers_go_round() {
    let (mut model, new_flows) = (model(), NewFlows::new(BalancerKind::Reps));
    let mut seen = Vec::new();
    for _ in BalancerKind::ALL {
        assert_eq!(model.act(Action::Balancer { forward: true }, &new_flows), Some(Order::Rechoose));
        seen.push(new_flows.get());
    }
    assert_eq!(seen.last(), Some(&BalancerKind::Reps));
    assert!(BalancerKind::ALL.iter().all(|kind| seen.contains(kind)));
    model.act(Action::Balancer { forward: false }, &new_flows);
    assert_eq!(new_flows.get(), seen[seen.len() - 2]);
}

/// What counts is on the screen, in a wide terminal and in a narrow one.
#[test]
fn the_screen_says_how_it_stands() {
    let mut model = model();
    (0..12).for_each(|step| model.take(&look(step, step as u64 * 12_500)));
    for size in [(130, 34), (80, 30)] {
        let screen = screen(&model, size);
        for text in [
            "live · sim · reps · seed 1",
            "11.0 us",
            "2 of 4 flows arrived",
            "paused",
            "new flows: ecmp",
            "4 connections frozen",
        ] {
            assert!(screen.contains(text), "{text} at {size:?}:\n{screen}");
        }
        for text in ["goodput 400.0 Gb/s", "leaf0->spine0", "drops all", "h3", "f fail", "space pause"] {
            assert!(screen.contains(text), "{text} at {size:?}:\n{screen}");
        }
        let row = screen.lines().find(|line| line.contains("leaf0->spine0")).unwrap();
        assert!(row.contains("100.0") && row.contains("100 %") && row.contains('7'), "{row}");
    }
    model.now.over = true;
    assert!(screen(&model, (130, 34)).contains("The run is over"));
    // A terminal that is too small shows less, and no more than that.
    screen(&model, (20, 5));
}

#[test]
fn states_are_said_in_words() {
    assert_eq!(state(&LinkState::UP), "");
    let ill = LinkState { rate_ppm: 250_000, loss_ppm: 10_000, up: false, ..LinkState::UP };
    assert_eq!(state(&ill), "down, slow: 25 %, loses 1 %");
}

#[test]
fn time_stands_goes_and_steps() {
    let mut pace = Pace::new();
    assert_eq!(pace.step_ps(), Some(5_000_000));
    pace.on_key(Key::Faster);
    assert_eq!(pace.step_ps(), Some(10_000_000));
    pace.on_key(Key::Pause);
    assert_eq!((pace.step_ps(), pace.to_string().as_str()), (None, "paused"));
    pace.on_key(Key::Step);
    assert_eq!((pace.step_ps(), pace.step_ps()), (Some(10_000_000), None));
    pace.on_key(Key::Pause);
    (0..40).for_each(|_| pace.on_key(Key::Slower));
    assert_eq!((pace.step_ps(), pace.to_string().as_str()), (Some(50_000), "1 us a second"));
}

#[test]
fn keys_are_read() {
    let key = |code| read(KeyEvent::new(code, KeyModifiers::NONE));
    assert_eq!(key(KeyCode::Char('f')), Key::Act(Action::Fail));
    assert_eq!(key(KeyCode::Down), Key::Act(Action::Down(1)));
    assert_eq!(key(KeyCode::Char('c')), Key::Other);
    assert_eq!(read(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)), Key::Interrupt);
}

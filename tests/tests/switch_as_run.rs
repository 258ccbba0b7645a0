//! `spray switch` beside `spray run`: the same scenario, sent by `spray send` over interfaces that exist, or by the hosts of a run.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;
use spray_test_support::{Folder, text};
use spray_tests::machines::{HOSTS, Machines, ip};
use spray_tests::running::{Running, content, wait_until};
use spray_tests::{scenarios, spray, turn};

/// What the hosts send, and how the fabric is.
struct Case {
    name: &'static str,
    pairs: &'static [(usize, usize)],
    megabytes: usize,
    balancer: &'static str,
    /// Of the senders and of the run.
    senders: &'static [&'static str],
    /// Of the switches and of the run.
    switches: &'static [&'static str],
    failure: Failure,
}

/// What befalls a link.
#[derive(Clone, Copy)]
enum Failure {
    /// The receiver's own link has half of its rate.
    Narrow,
    /// An uplink has a quarter of its rate.
    Slow,
    /// An uplink loses everything without a word, once it has carried some.
    Dead,
}

/// Bytes that a link has carried before it dies, and after how many microseconds two busy senders are so far.
const BEFORE: u64 = 5_000_000;
const BEFORE_US: u64 = 200_000;

/// What became of it.
#[derive(Debug)]
struct Figures {
    /// Mean completion time.
    seconds: f64,
    marks: u64,
    /// Frames that links between switches and to hosts lost, or cut.
    lost: u64,
    trims: u64,
}

impl Failure {
    fn link(self) -> &'static str {
        match self {
            Self::Narrow => "leaf1->h2",
            Self::Slow | Self::Dead => "leaf0->spine1",
        }
    }

    /// As `spray link` takes it.
    fn change(self) -> &'static str {
        match self {
            Self::Narrow => "rate=50%",
            Self::Slow => "rate=25%",
            Self::Dead => "silent",
        }
    }

    fn of_run(self) -> String {
        let (action, more) = match self {
            Self::Narrow => ("rate", "factor = 0.5".to_string()),
            Self::Slow => ("rate", "factor = 0.25".to_string()),
            Self::Dead => ("silent-drop", format!("at_us = {BEFORE_US}")),
        };
        format!("link_event=[{{link = \"{}\", action = \"{action}\", {more}}}]", self.link())
    }
}

impl Case {
    /// `spray run` on its own veth.
    fn run(&self, folder: &Path) -> Figures {
        let bytes = self.megabytes << 20;
        let flow =
            |(id, (from, to)): (usize, &(usize, usize))| format!("{from}->{to} id {} start 0 size {bytes}\n", id + 1);
        let flows: String = self.pairs.iter().enumerate().map(flow).collect();
        let (matrix, out) = (folder.join("flows.cm"), folder.join("run"));
        std::fs::write(&matrix, format!("Nodes {HOSTS}\nConnections {}\n{flows}", self.pairs.len())).unwrap();
        let mut run = spray();
        run.arg("run").arg(scenarios().join("pod.toml")).args(["-q", "--engine", "xdp", "--matrix"]).arg(matrix);
        run.args(["--balancer", self.balancer]).args(self.senders).args(self.switches).arg("--out").arg(&out);
        run.args(["--set", &self.failure.of_run()]);
        let output = run.output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        let of_run = std::fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().path().join("summary.json"));
        let summary = of_run.filter_map(|path| std::fs::read(path).ok()).next().expect("a run's summary");
        let summary: Value = serde_json::from_slice(&summary).unwrap();
        let count = |field: &str| summary[field].as_u64().unwrap();
        Figures {
            seconds: summary["fct_mean_us"].as_f64().unwrap() / 1e6,
            marks: count("ecn_marks"),
            lost: count("drops_queue") + count("drops_link"),
            trims: count("trims"),
        }
    }

    /// `spray send` over the machine's interfaces. Packets are as long as those of the run.
    fn switch(&self, folder: &Path) -> Figures {
        let machines = Machines::new("as-run");
        for host in 0..HOSTS {
            ip(&format!("-n {} link set p{host} mtu 3092", machines.machine()));
            ip(&format!("-n {} link set eth0 mtu 3092", machines.host(host)));
        }
        machines.switch(self.switches);
        let (link, change) = (self.failure.link(), self.failure.change());
        if !matches!(self.failure, Failure::Dead) {
            machines.links(link, &[change]);
        }
        let mut to: Vec<usize> = self.pairs.iter().map(|(_, to)| *to).collect();
        to.dedup();
        // Written before either begins.
        for (from, _) in self.pairs {
            std::fs::write(file_of(*from, folder), content(*from as u64, self.megabytes << 20)).unwrap();
        }
        let receivers: Vec<Running> = to.iter().map(|to| receiver(&machines, *to, folder)).collect();
        let senders: Vec<Running> = self.pairs.iter().map(|pair| self.sender(&machines, *pair, folder)).collect();
        if matches!(self.failure, Failure::Dead) {
            wait_until("data on the link", || machines.sum(link, "bytes") > BEFORE);
            machines.links(link, &[change]);
        }
        let seconds = senders.into_iter().map(|sender| {
            let said: Value = serde_json::from_str(&output(sender)).unwrap();
            said["seconds"].as_f64().unwrap()
        });
        let seconds = seconds.sum::<f64>() / self.pairs.len() as f64;
        drop(receivers);
        assert_eq!(machines.shown()["lost_frames"], 0, "this machine is too slow for the scenario");
        let links = machines.links("*", &[]);
        // A host of a run keeps what its own link does not carry; here the link has a queue.
        let of_switches = || links.iter().filter(|link| !link["link"].as_str().unwrap().starts_with('h'));
        let sum = |field: &str| of_switches().map(|link| link[field].as_u64().unwrap()).sum();
        let figures = Figures {
            seconds,
            marks: sum("marks"),
            lost: sum("drops_queue") + sum("drops_silent"),
            trims: sum("trims"),
        };
        machines.down();
        figures
    }

    fn sender(&self, machines: &Machines, (from, to): (usize, usize), folder: &Path) -> Running {
        let mut sender = Machines::command(&machines.host(from), &own());
        sender.arg("send").arg(file_of(from, folder)).args([
            "--insecure",
            "--json",
            "--timeout",
            "60",
            "--interface",
            "eth0",
        ]);
        sender
            .args(["--to", &Machines::address(to, false).to_string(), "--balancer", self.balancer])
            .args(self.senders);
        sender.args(self.switches.contains(&"queue.trimming=true").then_some("--trimming"));
        Running(sender.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    }

    /// Both, and how the second compares with the first.
    fn compare(&self) -> [Figures; 2] {
        let folder = Folder::new();
        [self.run(folder.path()), self.switch(folder.path())]
    }
}

fn own() -> String {
    spray().get_program().to_str().unwrap().to_string()
}

fn file_of(host: usize, folder: &Path) -> PathBuf {
    folder.join(format!("from-h{host}"))
}

fn receiver(machines: &Machines, host: usize, folder: &Path) -> Running {
    let out = folder.join(format!("at-h{host}"));
    std::fs::create_dir(&out).unwrap();
    let mut receiver = Machines::command(&machines.host(host), &own());
    receiver.args(["recv", "--keep", "--insecure", "--interface", "eth0", "--out"]).arg(out);
    Running(receiver.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()).listening()
}

/// What a process said when it ended well.
fn output(mut process: Running) -> String {
    let mut stdout = process.0.stdout.take().expect("a pipe");
    let said = std::io::read_to_string(&mut stdout).unwrap();
    assert!(process.end().success(), "{}", process.said());
    said
}

/// A sender that the network does not move, and that sends one and a half times what its receiver's link carries.
const STEADY: Case = Case {
    name: "too much for the last link",
    pairs: &[(0, 2)],
    megabytes: 16,
    balancer: "reps",
    senders: &["--cc", "fixed-rate", "--set", "transport.fixed-rate.rate_gbps=0.15"],
    switches: &SHORT,
    failure: Failure::Narrow,
};
const SHORT: [&str; 2] = ["--set", "queue.limit=\"20 packets\""];
const TRIMMED: &[&str] = &[SHORT[0], SHORT[1], "--set", "queue.trimming=true"];

/// How far two counts are apart, as a share of the first.
fn apart(one: f64, other: f64) -> f64 {
    (other - one) / one
}

/// A sender that nothing moves gets the same marks and loses the same frames; the machine's own pace matters little.
#[test]
fn too_much_is_marked_trimmed_and_dropped_as_in_a_run() {
    let Some(_turn) = turn() else { return };
    for switches in [&SHORT[..], TRIMMED] {
        let [run, switch] = Case { switches, megabytes: 8, ..STEADY }.compare();
        let (lost, too) = (run.lost + run.trims, switch.lost + switch.trims);
        assert!(lost > 1_000 && run.marks > 2_000, "{run:?}");
        assert!(apart(lost as f64, too as f64).abs() < 0.1, "{run:?} {switch:?}");
        assert!(apart(run.marks as f64, switch.marks as f64).abs() < 0.1, "{run:?} {switch:?}");
        assert_eq!(run.trims > 0, switch.trims > 0);
    }
}

/// The table of `docs/results/switch.md`: minutes, on an idle machine.
#[test]
#[ignore = "it measures times, and prints a table"]
fn everything_beside_a_run() {
    let Some(_turn) = turn() else { return };
    let across = |name, balancer, switches, failure| Case {
        name,
        pairs: &[(0, 2), (1, 3)],
        megabytes: 24,
        balancer,
        senders: &[],
        switches,
        failure,
    };
    let schemes: [(&str, &[&str]); 5] = [
        ("jsq", &["--set", "switch.scheme=\"jsq\""]),
        ("adaptive", &["--set", "switch.scheme=\"adaptive\""]),
        ("conga", &["--set", "switch.scheme=\"conga\""]),
        ("flowcut-switch", &["--set", "switch.scheme=\"flowcut-switch\""]),
        ("reunion", &["--set", "switch.scheme=\"reunion\""]),
    ];
    let mut cases = vec![STEADY, Case { name: "as before, trimming", switches: TRIMMED, ..STEADY }];
    for balancer in ["reps", "reps-plus", "ops", "flowcut", "plb", "flowlet", "mprdma", "bitmap", "host-dr"] {
        cases.push(across("one uplink at 25 %", balancer, &[], Failure::Slow));
    }
    for (name, switches) in schemes {
        cases.push(across(name, "ecmp", switches, Failure::Slow));
    }
    for balancer in ["reps", "reps-plus"] {
        cases.push(across("one uplink dies", balancer, &[], Failure::Dead));
    }
    println!("| | hosts | Mb/s: run | switch | | marks: run | switch | lost, trimmed: run | switch |");
    println!("|---|---|--:|--:|--:|--:|--:|--:|--:|");
    for case in cases {
        let [run, switch] = case.compare();
        let mbps = |figures: &Figures| (case.megabytes << 23) as f64 / figures.seconds / 1e6;
        println!(
            "| {} | `{}` | {:.0} | {:.0} | {:+.1} % | {} | {} | {} | {} |",
            case.name,
            case.balancer,
            mbps(&run),
            mbps(&switch),
            100.0 * apart(mbps(&run), mbps(&switch)),
            run.marks,
            switch.marks,
            run.lost + run.trims,
            switch.lost + switch.trims,
        );
    }
}

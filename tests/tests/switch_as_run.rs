//! `spray switch` compared with `spray run`: the same scenario, sent by `spray send` over existing
//! interfaces, or by the hosts of a run.

use std::path::Path;
use std::process::Stdio;

use serde_json::Value;
use spray_test_support::{Folder, text};
use spray_tests::boxes::{Boxes, SWITCHES};
use spray_tests::machines::{HOSTS, Machines, ip};
use spray_tests::running::{Running, content};
use spray_tests::{scenarios, spray, turn};

/// The traffic of the hosts, and the settings of the fabric.
struct Case {
    name: &'static str,
    megabytes: usize,
    balancer: &'static str,
    /// Arguments of the senders and of the run.
    senders: &'static [&'static str],
    /// Arguments of the switches and of the run.
    switches: &'static [&'static str],
    failure: Failure,
}

/// The failure of links.
#[derive(Clone, Copy)]
enum Failure {
    /// The receiver's own link has half of its rate.
    Narrow,
    /// One uplink has half of its rate, and one a quarter: together less than a sender's.
    Slow,
    /// One uplink has half of its rate, and the other silently loses everything.
    Dead,
}

/// The figures of a transfer.
#[derive(Debug)]
struct Figures {
    /// The completion time.
    seconds: f64,
    marks: u64,
    /// Frames lost on links of switches.
    lost: u64,
    trims: u64,
}

/// A link, its change for `spray link`, and the same in a scenario.
type Change = (&'static str, &'static str, &'static str);

impl Figures {
    /// Returns the figures of links that have carried a transfer.
    fn of_links(seconds: f64, links: &[Value]) -> Self {
        // A host of a run delays packets beyond the rate of its own link; here the link has a
        // queue.
        let of_switches = || links.iter().filter(|link| !link["link"].as_str().unwrap().starts_with('h'));
        let sum = |field: &str| of_switches().map(|link| link[field].as_u64().unwrap()).sum();
        Self { seconds, marks: sum("marks"), lost: sum("drops_queue") + sum("drops_silent"), trims: sum("trims") }
    }
}

impl Failure {
    fn changes(self) -> &'static [Change] {
        const HALF: &str = "action = \"rate\", factor = 0.5";
        match self {
            Self::Narrow => &[("leaf1->h2", "rate=50%", HALF)],
            Self::Slow => &[
                ("leaf0->spine0", "rate=50%", HALF),
                ("leaf0->spine1", "rate=25%", "action = \"rate\", factor = 0.25"),
            ],
            Self::Dead => {
                &[("leaf0->spine0", "rate=50%", HALF), ("leaf0->spine1", "silent", "action = \"silent-drop\"")]
            }
        }
    }

    fn of_run(self) -> String {
        let event = |(link, _, event): &Change| format!("{{link = \"{link}\", {event}}}");
        let events: Vec<String> = self.changes().iter().map(event).collect();
        format!("link_event=[{}]", events.join(", "))
    }
}

impl Case {
    /// Runs `spray run` on its own veth.
    fn run(&self, folder: &Path) -> Figures {
        let (matrix, out) = (folder.join("flows.cm"), folder.join("run"));
        let flow = format!("0->2 id 1 start 0 size {}", self.megabytes << 20);
        std::fs::write(&matrix, format!("Nodes {HOSTS}\nConnections 1\n{flow}\n")).unwrap();
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

    /// Runs `spray send` over the interfaces of one machine, with the packet length of the run.
    fn switch(&self, folder: &Path) -> Figures {
        let machines = Machines::new("as-run");
        for host in 0..HOSTS {
            ip(&format!("-n {} link set p{host} mtu 3092", machines.machine()));
            ip(&format!("-n {} link set eth0 mtu 3092", machines.host(host)));
        }
        machines.switch(self.switches);
        for (link, change, _) in self.failure.changes() {
            machines.links(link, &[change]);
        }
        let seconds = self.send([0, 2].map(|host| machines.host(host)), folder);
        assert_eq!(machines.status()["lost_frames"], 0, "this machine is too slow for the scenario");
        let figures = Figures::of_links(seconds, &machines.links("*", &[]));
        machines.down();
        figures
    }

    /// Runs `spray send` over four machines, each of which runs one switch.
    fn boxes(&self, folder: &Path) -> Figures {
        let boxes = Boxes::new("as-run");
        boxes.set_mtu(3092);
        boxes.start_all(self.switches);
        let at = |link: &str| SWITCHES.into_iter().find(|switch| link.starts_with(switch)).expect("a switch's link");
        for (link, change, _) in self.failure.changes() {
            boxes.links(at(link), link, &[change]);
        }
        let seconds = self.send([0, 2].map(|host| boxes.namespace(&format!("h{host}"))), folder);
        let links = SWITCHES.iter().flat_map(|switch| {
            assert_eq!(boxes.status(switch)["lost_frames"], 0, "this machine is too slow for the scenario");
            boxes.links(switch, "*", &[])
        });
        let figures = Figures::of_links(seconds, &links.collect::<Vec<_>>());
        boxes.down();
        figures
    }

    /// Sends from one namespace to another. Returns the duration in seconds.
    fn send(&self, [from, to]: [String; 2], folder: &Path) -> f64 {
        let (file, out) = (folder.join("file"), folder.join("in"));
        std::fs::write(&file, content(0, self.megabytes << 20)).unwrap();
        std::fs::create_dir_all(&out).unwrap();
        let own = spray().get_program().to_str().unwrap().to_string();
        let mut receiver = Machines::command(&to, &own);
        receiver.args(["recv", "--keep", "--insecure", "--interface", "eth0", "--out"]).arg(&out);
        let receiver = Running(receiver.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()).listening();
        let mut sender = Machines::command(&from, &own);
        sender.arg("send").arg(file).args(["--insecure", "--json", "--timeout", "60", "--interface", "eth0"]);
        sender.args(["--to", &Machines::address(2, false).to_string(), "--balancer", self.balancer]).args(self.senders);
        sender.args(self.switches.contains(&"queue.trimming=true").then_some("--trimming"));
        let sender = Running(sender.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
        let report: Value = serde_json::from_str(&output(sender)).unwrap();
        drop(receiver);
        std::fs::remove_dir_all(out).unwrap();
        report["seconds"].as_f64().unwrap()
    }

    /// Runs `spray run`, and `spray switch` with all switches.
    fn compare(&self) -> [Figures; 2] {
        let folder = Folder::new();
        [self.run(folder.path()), self.switch(folder.path())]
    }

    /// As [`Case::compare`], and `spray switch` with one switch on each of four machines.
    fn compare_all(&self) -> [Figures; 3] {
        let [run, switch] = self.compare();
        [run, switch, self.boxes(Folder::new().path())]
    }
}

/// Returns the output of a process that succeeds.
fn output(mut process: Running) -> String {
    let mut stdout = process.0.stdout.take().expect("a pipe");
    let printed = std::io::read_to_string(&mut stdout).unwrap();
    assert!(process.end().success(), "{}", process.stderr());
    printed
}

/// A sender with a fixed rate, one and a half times that of its receiver's link.
const STEADY: Case = Case {
    name: "last link overloaded",
    megabytes: 16,
    balancer: "reps",
    senders: &["--cc", "fixed-rate", "--set", "transport.fixed-rate.rate_gbps=0.15"],
    switches: &SHORT,
    failure: Failure::Narrow,
};
const SHORT: [&str; 2] = ["--set", "queue.limit=\"20 packets\""];
const TRIMMED: &[&str] = &[SHORT[0], SHORT[1], "--set", "queue.trimming=true"];

/// Returns the difference of two counts, as a share of the first.
fn difference(one: f64, other: f64) -> f64 {
    (other - one) / one
}

/// With a fixed rate, switches mark, trim and drop the same number of packets in both cases. A
/// process that the machine stops for a moment catches up in one burst, so one of three tries
/// suffices.
#[test]
fn overload_is_marked_trimmed_and_dropped_as_in_a_run() {
    let Some(_turn) = turn() else { return };
    for switches in [&SHORT[..], TRIMMED] {
        let is_close = || {
            let [run, switch] = Case { switches, megabytes: 8, ..STEADY }.compare();
            assert_eq!(run.trims > 0, switch.trims > 0);
            let (lost, too) = (run.lost + run.trims, switch.lost + switch.trims);
            assert!(lost > 1_000 && run.marks > 2_000, "{run:?}");
            let is_close = [(lost, too), (run.marks, switch.marks)];
            eprintln!("{run:?} {switch:?}");
            is_close.iter().all(|&(one, other)| difference(one as f64, other as f64).abs() < 0.1)
        };
        assert!((0..3).any(|_| is_close()), "none of the three tries above is close enough");
    }
}

/// The table of `docs/results/switch.md`; takes minutes, on an idle machine.
#[test]
#[ignore = "it measures times, and prints a table"]
fn all_cases_compared_with_a_run() {
    let Some(_turn) = turn() else { return };
    let across =
        |name, balancer, switches, failure| Case { name, megabytes: 24, balancer, senders: &[], switches, failure };
    let schemes: [(&str, &[&str]); 2] = [
        ("switches: jsq", &["--set", "switch.scheme=\"jsq\""]),
        ("switches: adaptive", &["--set", "switch.scheme=\"adaptive\""]),
    ];
    let mut cases = vec![STEADY, Case { name: "as before, trimming", switches: TRIMMED, ..STEADY }];
    // Balancers that use one link at a time are left out: the selected link would determine the
    // result.
    for balancer in ["reps", "reps-plus", "ops", "mprdma", "bitmap"] {
        cases.push(across("uplinks at 50 and 25 %", balancer, &[], Failure::Slow));
    }
    for (name, switches) in schemes {
        cases.push(across(name, "ecmp", switches, Failure::Slow));
    }
    cases.push(across("uplinks at 50 % and dead", "reps", &[], Failure::Dead));
    println!("| | hosts | Mb/s: run | one box | | four boxes | | marks | | | lost, trimmed | | |");
    println!("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    for case in cases {
        let all = case.compare_all();
        let [run, one, four] = all.each_ref().map(|figures| (case.megabytes << 23) as f64 / figures.seconds / 1e6);
        let [first, second] = [one, four].map(|mbps| 100.0 * difference(run, mbps));
        let marks = all.each_ref().map(|figures| figures.marks.to_string()).join(" | ");
        let lost = all.each_ref().map(|figures| (figures.lost + figures.trims).to_string()).join(" | ");
        println!(
            "| {} | `{}` | {run:.0} | {one:.0} | {first:+.1} % | {four:.0} | {second:+.1} % | {marks} | {lost} |",
            case.name, case.balancer
        );
    }
}

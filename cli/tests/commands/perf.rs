//! `spray perf` and `spray serve` over UDP sockets on loopback addresses.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use spray_test_support::text;

use super::output::{documented, fields};
use super::{refused, spray};

/// A server with an address of its own, killed when dropped.
struct Server {
    process: Child,
    address: String,
    from: String,
}

impl Server {
    fn start(last: u8) -> Self {
        let [high, low] = (std::process::id() as u16).to_be_bytes();
        let [address, from] = [last, last + 1].map(|last| format!("127.{}.{low}.{last}", 96 | high & 31));
        let mut command = Command::new(spray_test_support::program("spray"));
        command.args(["serve", "--device", "udp", "--insecure", "--from", &address, "-p", "61504"]);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(process.stderr.as_mut().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("listening on ")));
        Self { process, address, from }
    }

    /// Returns the arguments of a client; its address depends on `number`.
    fn client(&self, number: &str, options: &[&'static str]) -> Vec<String> {
        let from = format!("{}{number}", self.from);
        let usual = ["perf", &self.address, "--device", "udp", "--insecure", "--from", &from, "-p", "61504"];
        usual.iter().chain(options).map(|word| (*word).to_owned()).collect()
    }

    fn measure(&self, number: &str, options: &[&'static str]) -> String {
        let words = self.client(number, options);
        let output = spray(&words.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(output.status.success(), "{options:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn json_has_the_fields_that_the_page_lists() {
    let mut server = Server::start(10);
    let options = ["-t", "1", "-b", "40M", "-P", "2", "--json"];
    let report: Value = serde_json::from_str(&server.measure("", &options)).unwrap();
    let mut expected = documented("Measured");
    assert!(expected.remove("error"));
    assert_eq!(fields(&report), expected);
    let sums = [&report["end"]["sum_sent"], &report["end"]["sum_received"]].map(|sum| number(&sum["bytes"]));
    assert!(sums[0] == sums[1] && sums[0] > 1e6, "{report}");
    assert!(number(&report["end"]["cpu_utilization_percent"]["remote_total"]) > 0.0, "{report}");
    assert_eq!(report["start"]["test_start"]["target_bitrate"], 40_000_000, "{report}");
    let lines = BufReader::new(server.process.stdout.take().unwrap()).lines().map(Result::unwrap);
    let stdout: Vec<String> = lines.take(2).collect();
    assert!(stdout.iter().all(|line| line.contains(", received ")), "{stdout:?}");
}

#[test]
fn several_clients_are_served_concurrently_and_in_sequence() {
    let server = &Server::start(20);
    std::thread::scope(|scope| {
        let one = |number| scope.spawn(move || server.measure(number, &["-t", "1", "--json"]));
        for client in ["", "1", "2"].map(one) {
            let report: Value = serde_json::from_str(&client.join().unwrap()).unwrap();
            assert!(number(&report["end"]["sum_received"]["bytes"]) > 1e5, "{report}");
        }
    });
    let stdout = server.measure("", &["-t", "1", "-R"]);
    for part in ["processor: here ", "in all"] {
        assert!(stdout.contains(part), "no {part}: {stdout}");
    }
}

#[test]
fn a_server_that_is_killed_or_absent_is_an_error() {
    for json in [false, true] {
        let mut server = Server::start(36);
        let mut words = server.client("", &["-t", "60", "-i", "0.2", "--timeout", "1"]);
        words.extend(json.then(|| "--json".into()));
        let mut command = Command::new(spray_test_support::program("spray"));
        let mut process = command.args(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
        // After the heading comes an interval.
        if json {
            std::thread::sleep(std::time::Duration::from_secs(2));
        } else {
            assert!(lines.nth(2).is_some());
        }
        server.process.kill().unwrap();
        let rest: Vec<String> = lines.collect();
        let output = process.wait_with_output().unwrap();
        let errors = text(&output.stderr);
        assert!(output.status.code() == Some(1) && errors.contains(&server.address), "{errors}");
        if json {
            let rest: Value = serde_json::from_str(&rest.concat()).unwrap();
            let sum = &rest["end"]["sum_sent"];
            assert!(number(&sum["bytes"]) > 0.0 && number(&sum["seconds"]) < 60.0, "{rest}");
            assert!(rest["error"].as_str().unwrap().contains(&server.address), "{rest}");
        }
    }
    let server = Server::start(39);
    let mut words = server.client("", &["-t", "1", "--timeout", "1", "--json"]);
    words[1] = server.address.rsplit_once('.').unwrap().0.to_owned() + ".42";
    let output = spray(&words.iter().map(String::as_str).collect::<Vec<_>>());
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{report}");
    assert!(report["error"].as_str().unwrap().contains("does `spray serve` run there?"), "{report}");
    assert!(report["start"].is_object() && report["intervals"].as_array().unwrap().is_empty(), "{report}");
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    let perf = |options: &[&str], parts: &[&str]| {
        refused(&[&["perf", "127.0.0.1", "--device", "udp", "--insecure"], options].concat(), parts);
    };
    perf(&["-R", "--bidir"], &["--reverse", "--bidirectional"]);
    perf(&["-b", "1X"], &["expected bits a second from 1K to 1T"]);
    perf(&["-b", "-1"], &["-1"]);
    perf(&["--load", "1"], &["--latency"]);
    perf(&["--latency", "-b", "1M"], &["--latency", "--bitrate"]);
    perf(&["--latency", "-R"], &["--latency", "--reverse"]);
    perf(&["-p", "5201"], &["multiples of 64"]);
}

/// On a full disk `spray perf` writes one message and exits with code 1, in every output format.
#[test]
fn results_that_cannot_be_written_are_a_failure() {
    let server = Server::start(23);
    let forms: [&[&'static str]; 3] = [&[], &["--json"], &["--latency"]];
    for (number, form) in forms.iter().enumerate() {
        let words = server.client(&number.to_string(), form);
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let mut spray = Command::new(spray_test_support::program("spray"));
        let output = spray.args(words).args(["-t", "1"]).stdout(full).output().unwrap();
        let error = text(&output.stderr);
        let remarks = error.lines().filter(|line| line.contains("cannot write")).count();
        assert_eq!((output.status.code(), remarks), (Some(1), 1), "{form:?}: {error}");
    }
}

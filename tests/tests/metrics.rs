//! `--metrics`: the counters of a receiver reach Prometheus, over the network on which it receives.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::Path;
use std::process::{Command, Stdio};

use spray_test_support::{Folder, skip, text};
use spray_tests::machines::{Machines, ip};
use spray_tests::routers::Routers;
use spray_tests::running::{Running, inbox, payload, wait_until};
use spray_tests::{shared_turn, spray, turn};

const BYTES: usize = 16 << 20;

/// Returns the response of a server; `None` if no server answers.
pub fn request(address: impl ToSocketAddrs, path: &str) -> Option<String> {
    let request = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(address)?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: spray\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    request().ok()
}

/// Requests a page of the receiver's machine from the sender's.
pub fn get(routers: &Routers, port: u16, path: &str) -> Option<String> {
    routers.run_in(0, || request((Routers::address(1, 0), port), path)).unwrap()
}

/// Returns the value of a line of metrics.
pub fn value(metrics: &str, name: &str) -> Option<f64> {
    metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
}

#[test]
fn metrics_on_a_loopback_interface_that_is_down_are_rejected() {
    let Some(_turn) = shared_turn() else { return };
    let namespace = format!("test-{}-lo", std::process::id());
    ip(&format!("netns add {namespace}"));
    for address in ["9464", "[::1]:9464"] {
        let mut command = Machines::command(&namespace, &spray().get_program().to_string_lossy());
        let output = command.args(["serve", "--device", "udp", "--insecure", "--metrics", address]).output().unwrap();
        let stderr = text(&output.stderr);
        assert!(output.status.code() == Some(2) && stderr.contains("`ip link set lo up`"), "{address}: {stderr}");
    }
    ip(&format!("netns del {namespace}"));
}

/// Starts a receiver that runs permanently, and serves its metrics.
fn receive(routers: &Routers, out: &Path) -> Running {
    let address = Routers::address(1, 0);
    let mut command = spray();
    command.args(["recv", "--insecure", "--keep", "--interface", Routers::INTERFACE, "--out"]).arg(out);
    command.args(["--metrics", &format!("{address}:9464")]).stdout(Stdio::piped()).stderr(Stdio::piped());
    Running(routers.run_in(1, || command.spawn()).unwrap().unwrap()).listening()
}

fn send(routers: &Routers, file: &Path) {
    let mut command = spray();
    command.arg("send").arg(file).args(["--insecure", "--interface", Routers::INTERFACE, "--to"]);
    command.arg(Routers::address(1, 0).to_string()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut sending = Running(routers.run_in(0, || command.spawn()).unwrap().unwrap());
    assert!(sending.end().success(), "{}", sending.stderr());
}

#[test]
fn a_confined_receiver_serves_its_counters() {
    let Some(_turn) = turn() else { return };
    let (routers, folder) = (Routers::new().unwrap(), Folder::new());
    let _receiving = receive(&routers, &inbox(&folder));
    send(&routers, &payload(&folder, BYTES));
    let bytes = |metrics: &str| value(metrics, "spray_receiver_bytes_total").unwrap_or_default();
    let mut metrics = String::new();
    wait_until("all bytes to be counted", || {
        metrics = get(&routers, 9464, "/metrics").unwrap_or_default();
        bytes(&metrics) >= BYTES as f64
    });
    // The description of the file precedes it.
    assert!(bytes(&metrics) < BYTES as f64 + 10_000.0, "{metrics}");
    let data = value(&metrics, "spray_frames_total{direction=\"received\",kind=\"data\"}").unwrap();
    let packets = value(&metrics, "spray_receiver_packets_total").unwrap();
    assert!(packets > BYTES as f64 / 9000.0 && data >= packets, "{metrics}");
    assert!(get(&routers, 9464, "/").unwrap().starts_with("HTTP/1.1 404"));
}

#[test]
fn prometheus_scrapes_the_metrics() {
    let Some(_turn) = turn() else { return };
    if Command::new("prometheus").arg("--version").output().is_err() {
        skip("prometheus is not installed");
        return;
    }
    let (routers, folder) = (Routers::new().unwrap(), Folder::new());
    let _receiving = receive(&routers, &inbox(&folder));
    let address = Routers::address(1, 0);
    let config = include_str!("../../deploy/metrics/prometheus.yml").replace("127.0.0.1", &address.to_string());
    let mut command = Command::new("prometheus");
    command.arg(format!("--config.file={}", folder.file("prometheus.yml", config)));
    command.arg(format!("--storage.tsdb.path={}", folder.join("tsdb")));
    command.arg(format!("--web.listen-address={address}:9090")).stdout(Stdio::null()).stderr(Stdio::null());
    let _prometheus = Running(routers.run_in(1, || command.spawn()).unwrap().unwrap());
    send(&routers, &payload(&folder, BYTES));
    // `[.., "16777300"]` is a sample in the response to the query.
    let sample = |query: &str| -> Option<f64> {
        let answer = get(&routers, 9090, &format!("/api/v1/query?query={query}"))?;
        let json: serde_json::Value = serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()?;
        json["data"]["result"][0]["value"][1].as_str()?.parse().ok()
    };
    wait_until("Prometheus to record all bytes", || {
        sample("spray_receiver_bytes_total").is_some_and(|bytes| bytes >= BYTES as f64)
    });
    assert_eq!(sample("up"), Some(1.0));
}

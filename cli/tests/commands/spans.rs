//! `-v`, and traces sent to an OpenTelemetry collector, which is played here.

use std::process::{Command, Output};

use spray_test_support::{Folder, text};

const SMALL: &str = "name = \"small\"\n[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n\
                     [workload]\nkind = \"cross-leaf-permutation\"\nbytes = \"64 KiB\"\n[transport]\nbalancer = [\"ops\", \"reps\"]\n";

fn run(rest: &[&str], endpoint: Option<&str>) -> Output {
    let folder = Folder::new();
    let (scenario, out) = (folder.file("small.toml", SMALL), folder.join("out"));
    let mut command = Command::new(spray_test_support::program("spray"));
    command
        .args(["run", &scenario, "--engine", "sim", "--out", &out])
        .args(rest)
        .env_remove("OTEL_EXPORTER_OTLP_ENDPOINT");
    if let Some(endpoint) = endpoint {
        command.env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint);
    }
    command.output().unwrap()
}

#[test]
fn v_says_what_is_done_and_how_long_it_takes() {
    let output = run(&["-v"], None);
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    let times = |name: &str| said.lines().filter(|line| line.trim_end().ends_with(&format!(" ms  {name}"))).count();
    assert_eq!((times("prepare"), times("run")), (2, 2), "{said}");
    let silent = run(&[], None);
    assert!(!text(&silent.stderr).contains(" ms  "));
}

#[cfg(not(feature = "otlp"))]
#[test]
fn a_build_without_a_collector_says_that_no_trace_is_sent() {
    let output = run(&[], Some("http://127.0.0.1:4318"));
    let said = text(&output.stderr);
    assert!(
        output.status.success() && said.contains("no trace is sent") && said.contains("cargo xtask build"),
        "{said}"
    );
}

#[cfg(feature = "otlp")]
mod collector {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::TcpListener;

    use serde_json::Value;

    use super::{run, text};

    /// The body of a request, which is answered.
    fn take(listener: &TcpListener) -> Option<(String, Value)> {
        let (stream, _) = listener.accept().ok()?;
        let mut reader = BufReader::new(stream);
        let (mut first, mut bytes) = (String::new(), 0);
        reader.read_line(&mut first).unwrap();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            let line = line.trim().to_lowercase();
            if let Some(length) = line.strip_prefix("content-length: ") {
                bytes = length.parse().unwrap();
            }
            if line.is_empty() {
                break;
            }
        }
        let mut body = vec![0; bytes];
        reader.read_exact(&mut body).unwrap();
        reader.get_mut().write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").unwrap();
        Some((first, serde_json::from_slice(&body).unwrap()))
    }

    #[test]
    fn a_collector_gets_the_spans() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let collector = std::thread::spawn(move || (0..4).map(|_| take(&listener).unwrap()).collect::<Vec<_>>());
        let output = run(&[], Some(&endpoint));
        assert!(output.status.success(), "{}", text(&output.stderr));
        let requests = collector.join().unwrap();
        let mut names = Vec::new();
        for (first, body) in &requests {
            assert!(first.starts_with("POST /v1/traces HTTP/1.1"), "{first}");
            let resource = &body["resourceSpans"][0];
            let service = resource["resource"]["attributes"].as_array().unwrap();
            let is_spray = |entry: &Value| entry["key"] == "service.name" && entry["value"]["stringValue"] == "spray";
            assert!(service.iter().any(is_spray), "{body}");
            let span = &resource["scopeSpans"][0]["spans"][0];
            let time = |key: &str| span[key].as_str().unwrap().parse::<u64>().unwrap();
            assert!(time("startTimeUnixNano") <= time("endTimeUnixNano"), "{span}");
            names.push(span["name"].as_str().unwrap().to_owned());
        }
        names.sort();
        assert_eq!(names, ["prepare", "prepare", "run", "run"]);
    }

    #[test]
    fn a_collector_that_is_not_there_stops_nothing() {
        // A port that was free a moment ago.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let output = run(&[], Some(&format!("http://127.0.0.1:{port}")));
        let said = text(&output.stderr);
        assert!(output.status.success(), "{said}");
        assert_eq!(said.matches("warning: no trace reaches http://127.0.0.1").count(), 1, "{said}");
    }

    #[test]
    fn an_address_that_is_none_is_refused() {
        let output = run(&[], Some("not an address"));
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("OTEL_EXPORTER_OTLP_ENDPOINT") && said.contains("http://HOST:PORT"), "{said}");
    }
}

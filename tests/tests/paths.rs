//! `spray paths` over plain Linux routers: a leaf, four spines, a leaf.

use std::process::{Command, Stdio};

use serde_json::Value;
use spray_test_support::{Folder, text};
use spray_tests::routers::Routers;
use spray_tests::running::Running;
use spray_tests::{spray, turn};

/// Disables the rate limit of ICMP. By default Linux answers six requests at once, and then one per
/// second.
const UNLIMITED: &str = "sysctl -qw net.ipv4.icmp_ratelimit=0";

/// The routers, with `spray serve` at the far host.
struct Setup {
    routers: Routers,
    _serve: Running,
    folder: Folder,
}

impl Setup {
    /// Creates the routers; with `keyed` the server requires a key.
    fn new(keyed: bool) -> Self {
        let (routers, folder) = (Routers::new().unwrap(), Folder::new());
        (0..2).for_each(|side| routers.at_gateway(side, UNLIMITED).unwrap());
        let key = folder.path().join("key");
        let trust = if keyed { vec!["--key", key.to_str().unwrap()] } else { vec!["--insecure"] };
        assert!(spray().arg("keygen").arg(&key).output().unwrap().status.success());
        let mut serve = spray();
        serve.args(["serve", "--interface", Routers::INTERFACE]).args(trust);
        serve.stdout(Stdio::null()).stderr(Stdio::piped());
        let serve = routers.run_in(1, || serve.spawn()).unwrap().unwrap();
        Self { routers, _serve: Running(serve).listening(), folder }
    }

    fn paths(&self, rest: &[&str]) -> Value {
        let mut command: Command = spray();
        command.args(["paths", &Routers::address(1, 0).to_string(), "--json", "-q"]).args(rest);
        let output = self.routers.run_in(0, || command.output()).unwrap().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{}", text(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

/// Returns the values with this state.
fn values<'a>(found: &'a Value, state: &str) -> Vec<&'a Value> {
    found["values"].as_array().unwrap().iter().filter(|value| value["state"] == state).collect()
}

fn of_kind<'a>(found: &'a Value, kind: &str) -> Vec<&'a Value> {
    found["findings"].as_array().unwrap().iter().filter(|finding| finding["kind"] == kind).collect()
}

/// Returns the values that findings of a kind refer to.
fn ports(found: &Value, kind: &str) -> Vec<u64> {
    let ports = of_kind(found, kind).into_iter().flat_map(|finding| finding["ports"].as_array().unwrap());
    ports.map(|port| port.as_u64().unwrap()).collect()
}

/// Returns the kinds of findings, except rate limits of routers.
fn kinds(found: &Value) -> Vec<&str> {
    let kinds = found["findings"].as_array().unwrap().iter().map(|finding| finding["kind"].as_str().unwrap());
    kinds.filter(|kind| *kind != "limited").collect()
}

/// Returns the spines that values take, sorted and without duplicates.
fn spines(found: &Value) -> Vec<String> {
    let mut spines: Vec<String> =
        values(found, "arrives").iter().map(|v| v["hops"][1].as_str().unwrap().into()).collect();
    spines.sort();
    spines.dedup();
    spines
}

#[test]
fn values_are_listed_with_their_paths() {
    let Some(_turn) = turn() else { return };
    let setup = Setup::new(true);
    let key = setup.folder.path().join("key");
    let keyed = ["--key", key.to_str().unwrap()];
    let found = setup.paths(&keyed);
    assert_eq!(found["answered_by"], "endpoint");
    assert!(kinds(&found).iter().all(|kind| *kind == "slow"), "{found}");
    let all = values(&found, "arrives");
    assert_eq!((all.len(), &all[0]["port"], &all[31]["port"]), (32, &49_152.into(), &49_183.into()));
    assert!(
        all.iter().all(|value| value["sent"] == 10
            && value["answered"] == 10
            && value["hops"].as_array().unwrap().len() == 4)
    );
    assert_eq!(spines(&found), ["10.10.0.2", "10.10.1.2", "10.10.2.2", "10.10.3.2"]);
    assert_eq!(found["evenness"]["paths"], 4);
    // So far the spines are rate-limited: eight values each exceed Linux's burst.
    setup.routers.at_spines(UNLIMITED).unwrap();
    // Without the key the endpoint does not answer, but routers do.
    let unauthenticated = setup.paths(&[]);
    assert_eq!((&unauthenticated["answered_by"], kinds(&unauthenticated)), (&Value::Null, vec!["no-answer"]));
    // The same values take the same paths.
    let leaves_and_spines = |found: &Value| -> Vec<Value> {
        found["values"].as_array().unwrap().iter().map(|value| value["hops"][1].clone()).collect()
    };
    assert_eq!(leaves_and_spines(&unauthenticated), leaves_and_spines(&found));
    // Another command on this side receives the answers of endpoints.
    let mut other = spray();
    other.args(["serve", "--interface", Routers::INTERFACE, "--insecure"]).stdout(Stdio::null()).stderr(Stdio::piped());
    let other = Running(setup.routers.run_in(0, || other.spawn()).unwrap().unwrap()).listening();
    let in_use = setup.paths(&keyed);
    let why = of_kind(&in_use, "in-use")[0]["text"].as_str().unwrap();
    assert!(why.contains("eth0 is in use") && why.contains(&format!("`kill {}`", other.0.id())), "{why}");
    drop(other);
    setup.routers.at_gateway(0, "sysctl -qw net.ipv4.fib_multipath_hash_policy=0").unwrap();
    let found = setup.paths(&keyed);
    assert!(spines(&found).len() == 1 && kinds(&found).contains(&"one-path"), "{found}");
}

#[test]
fn faults_of_paths_are_found() {
    const FEW: [&str; 2] = ["--ports", "49152-49175"];
    let Some(_turn) = turn() else { return };
    let setup = Setup::new(false);
    setup.routers.at_spines(UNLIMITED).unwrap();
    let healthy = setup.paths(&FEW);
    // A spine drops everything, in both directions, and routing does not detect it.
    setup.routers.set_spine(0, Routers::RATE_BPS, 1.0).unwrap();
    let found = setup.paths(&FEW);
    assert!(!spines(&found).contains(&"10.10.0.2".to_owned()), "{found}");
    let over_it = values(&healthy, "arrives").into_iter().filter(|value| value["hops"][1] == "10.10.0.2");
    let dead = ports(&found, "dead-path");
    assert!(over_it.map(|value| value["port"].as_u64().unwrap()).all(|port| dead.contains(&port)), "{found}");
    // Every value has a finding: packets of another spine may return over this one.
    let explained = [dead, ports(&found, "return-path")].concat().len();
    assert_eq!(explained, values(&found, "lost").len() + values(&found, "refused").len(), "{found}");
    setup.routers.heal().unwrap();
    // Nine ports are dropped at the first router.
    setup.routers.at_gateway(0, "ip rule add ipproto udp sport 49160-49168 blackhole").unwrap();
    let found = setup.paths(&FEW);
    let dropped = ports(&found, "dead-path");
    assert!((49_160..49_169).all(|port| dropped.contains(&port)), "{found}");
    setup.routers.at_gateway(0, "ip rule del ipproto udp sport 49160-49168 blackhole").unwrap();
    // One spine has a longer round-trip time.
    let _far = setup.routers.delay(1, std::time::Duration::from_millis(20)).unwrap();
    let found = setup.paths(&FEW);
    let slow = of_kind(&found, "slow");
    assert!(slow.iter().any(|finding| finding["text"].as_str().unwrap().contains("the path via 10.10.1.2")), "{found}");
}

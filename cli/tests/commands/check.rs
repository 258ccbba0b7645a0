//! `spray check`.

use serde_json::Value;
use spray_test_support::{Folder, text};

use super::output::{documented, fields};
use super::spray;

#[test]
fn files_are_described_or_rejected_with_their_place() {
    let folder = Folder::new();
    let matrix = folder.file("a.cm", "Nodes 4\nConnections 9\n0->1 id 1 start 0 size 2e6\n");
    let scenario = folder.file(
        "s.toml",
        "name = \"s\"\nseeds = [1, 2]\n[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n\
         [workload]\nkind = \"permutation\"\nbytes = \"1 MiB\"\n",
    );
    let output = spray(&["check", &matrix, &scenario]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let lines = text(&output.stdout);
    let expected = format!(
        "{matrix}: matrix, 2 hosts, 1 flows, 2000000 bytes\n\
         {scenario}: scenario, 4 hosts, 4 switches, 16 links, 4 flows, 2 runs, up to 100 Gb/s, 4194304 bytes\n"
    );
    assert_eq!(lines, expected);
    assert!(text(&output.stderr).contains("`Connections` is 9, but the file has 1"), "{output:?}");

    let hpcc = folder.file("hpcc.txt", "1\n0 1 3 100 1000 2\n");
    let output = spray(&["check", "--json", &matrix, &hpcc, &folder.join("none")]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&found[0]["kind"], &found[0]["bytes"]), (&"matrix".into(), &2_000_000.into()));
    (0..3).for_each(|index| assert_eq!(fields(&found[index]), documented("Input files")));
    let errors = [1, 2].map(|index| found[index]["error"].as_str().unwrap().to_owned());
    assert!(errors[0].contains("HPCC") && errors[1].contains("cannot be read"), "{errors:?}");
    assert!(text(&output.stderr).ends_with("2 of 3 files are not read\n"), "{output:?}");
}

#[test]
fn flags_that_are_no_numbers_are_rejected_in_our_words() {
    for (flag, value, expected) in [
        ("--seed", "abc", "`--seed <N>` is abc; allowed: a whole number"),
        ("--seed", "99999999999999999999", "allowed: a whole number that is not too large"),
        ("--threads", "1.5", "`--threads <N>` is 1.5; allowed: a whole number"),
    ] {
        let output = spray(&["sim", flag, value]);
        let stderr = text(&output.stderr);
        assert!(output.status.code() == Some(2) && stderr.contains(expected), "{stderr}");
        assert!(!stderr.contains("digit"), "{stderr}");
    }
}

#[test]
fn renamed_settings_are_accepted_with_a_warning() {
    let folder = Folder::new();
    let scenario = folder.file(
        "s.toml",
        "name = \"s\"\n[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n\
         [workload]\nkind = \"partner-after-partner\"\nsizes = \"uniform\"\nmax_bytes = \"64 KiB\"\nmessages = 2\n",
    );
    let output = spray(&["run", &scenario, "--engine", "sim", "--no-report", "--out", &folder.join("out")]);
    let warning = "`partner-after-partner` of `workload.kind` is now `closed-loop`";
    assert!(output.status.success() && text(&output.stderr).contains(warning), "{output:?}");
    let output = spray(&["check", &scenario]);
    assert!(output.status.success() && text(&output.stderr).contains(warning), "{output:?}");
}

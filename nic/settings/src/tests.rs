use std::path::Path;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::json;
use spray_core::units::ByteSize;

use super::*;

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Top {
    /// Its name.
    name: String,
    /// What it is built of.
    shape: Kind,
    #[serde(default)]
    transport: Transport,
    /// What happens.
    #[serde(default)]
    event: Vec<Event>,
    /// What waits.
    #[serde(default)]
    length: Option<Length>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
enum Kind {
    /// Of two tiers.
    TwoTiers(Tiers),
    /// As drawn.
    Drawn {
        /// The file.
        #[schemars(extend("x-file" = true))]
        file: String,
        /// Time through it.
        #[serde(default = "one")]
        #[schemars(range(min = 0.0, max = 10.0))]
        latency_us: f64,
    },
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Tiers {
    /// How many leaves.
    #[schemars(range(min = 1, max = 8))]
    leaves: u32,
    /// Time through it.
    #[serde(default = "one")]
    #[schemars(range(min = 0.0, max = 10.0))]
    latency_us: f64,
}

fn one() -> f64 {
    1.0
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
struct Transport {
    /// One after the other.
    #[schemars(schema_with = "one_or_list")]
    balancer: Vec<Rule>,
    /// Whose rule.
    rule: Rule,
    /// Shares | ratios.
    #[schemars(range(min = 0.5, max = 2.0))]
    share: Option<f64>,
    #[serde(flatten)]
    schemes: Schemes,
}

impl Default for Transport {
    fn default() -> Self {
        let (balancer, rule, schemes) = (vec![Rule::UltraEthernet], Rule::Paper, Schemes::default());
        Self { balancer, rule, share: None, schemes }
    }
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
struct Schemes {
    /// Recycles.
    reps: Reps,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
struct Reps {
    /// Entropy values
    /// cached.
    #[schemars(range(min = 1, max = 8))]
    buffer: u8,
    /// Whether.
    on: bool,
    /// What waits.
    #[schemars(range(max = 1_000_000))]
    wait_bytes: Option<Bytes>,
}

impl Default for Reps {
    fn default() -> Self {
        Self { buffer: 8, on: true, wait_bytes: None }
    }
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Bytes(u64);

impl JsonSchema for Bytes {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Bytes".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["integer", "string"], "minimum": 0 })
    }
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String")]
struct Length(String);

impl TryFrom<String> for Length {
    type Error = &'static str;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        if text.ends_with("bdp") { Ok(Self(text)) } else { Err("no length") }
    }
}

impl JsonSchema for Length {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Length".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "x-allowed": "\"1 bdp\"" })
    }
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Rule {
    #[default]
    /// The paper's.
    Paper,
    /// Another's.
    UltraEthernet,
    #[serde(rename = "6", alias = "six")]
    #[schemars(extend("x-alias" = "six"))]
    /// As a number.
    Six,
}

fn one_or_list(generator: &mut SchemaGenerator) -> Schema {
    let one = generator.subschema_for::<Rule>();
    json_schema!({ "anyOf": [one, { "type": "array", "items": one, "minItems": 1 }] })
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Event {
    /// Which link.
    link: String,
    #[serde(flatten)]
    action: Action,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "action", rename_all = "kebab-case")]
enum Action {
    /// Gone.
    Down,
    /// Slower.
    Rate {
        /// What is left.
        #[schemars(range(min = 0.001, max = 0.999))]
        factor: f64,
    },
}

const TEXT: &str = "name = \"x\"\n[shape]\nkind = \"two-tiers\"\nleaves = 2\n";

fn document(text: &str) -> Document {
    Document::parse(Path::new("dir/x.toml"), text).unwrap()
}

fn read(text: &str, assignments: &[&str]) -> Result<Top, Error> {
    let mut document = Document::parse(Path::new("dir/x.toml"), text)?;
    assignments.iter().try_for_each(|assignment| set(&mut document, assignment))?;
    document.read()
}

/// Applies the assignment `text`, `path=value`.
fn set(document: &mut Document, text: &str) -> Result<(), Error> {
    let (path, value) = assignment(text)?;
    document.assign(path, value, &format!("--set {text}"))
}

#[test]
fn missing_fields_have_their_defaults() {
    let top = read(TEXT, &[]).unwrap();
    assert_eq!(top.shape, Kind::TwoTiers(Tiers { leaves: 2, latency_us: 1.0 }));
    assert_eq!(top.transport, Transport::default());
    assert_eq!(top.transport.schemes.reps.buffer, 8);
}

#[test]
fn assignments_set_every_field_add_to_lists_and_replace_tables() {
    let rest = "[[event]]\nlink = \"a\"\naction = \"down\"\n";
    let set = [
        "transport.reps.buffer=4",
        "transport.reps.wait_bytes=2 kB",
        "transport.reps.on = false",
        "transport.balancer=ultra-ethernet",
        "transport.rule=6",
        "name=42",
        "event.0.link=b",
        "event.1={link = \"c\", action = \"rate\", factor = 0.5}",
        "event.+={link = \"d\", action = \"down\"}",
        "shape={kind = \"drawn\", file = \"f\"}",
        "transport.share=1",
    ];
    let top = read(&format!("{TEXT}{rest}"), &set).unwrap();
    let reps = &top.transport.schemes.reps;
    assert_eq!((reps.buffer, &reps.wait_bytes, reps.on), (4, &Some(Bytes(2_000)), false));
    assert_eq!((top.transport.balancer, top.transport.rule), (vec![Rule::UltraEthernet], Rule::Six));
    assert_eq!((top.name.as_str(), top.transport.share), ("42", Some(1.0)));
    let events: Vec<_> = top.event.iter().map(|event| (event.link.as_str(), &event.action)).collect();
    assert_eq!(events, [("b", &Action::Down), ("c", &Action::Rate { factor: 0.5 }), ("d", &Action::Down)]);
    assert_eq!(top.shape, Kind::Drawn { file: "f".into(), latency_us: 1.0 });
    assert_eq!(read(TEXT, &["event.+={link = \"d\", action = \"down\"}"]).unwrap().event.len(), 1);
    assert_eq!(read(TEXT, &["transport.share=2", "transport.share=auto"]).unwrap().transport.share, None);
    assert_eq!(read(TEXT, &["transport.balancer=[\"paper\", \"6\"]"]).unwrap().transport.balancer.len(), 2);
    assert_eq!(read(TEXT, &["transport.balancer=six"]).unwrap().transport.balancer, [Rule::Six]);
}

#[test]
fn errors_in_files_name_the_position_and_the_allowed_values() {
    let with = |rest: &str| format!("{TEXT}{rest}\n");
    let cases = [
        (
            TEXT.replace("leaves", "leafs"),
            "4:1: unknown field `leafs` in [shape] (did you mean `leaves`?); allowed: kind, leaves, latency_us",
        ),
        (TEXT.replace("leaves = 2", ""), "2:1: missing field `leaves` in [shape]; allowed: a whole number from 1 to 8"),
        (TEXT.replace("leaves = 2", "leaves = 0"), "4:10: `leaves` is 0; allowed: a whole number from 1 to 8"),
        (TEXT.replace("leaves = 2", "leaves = 1.5"), "4:10: `leaves` is 1.5; allowed: a whole number from 1 to 8"),
        (
            TEXT.replace("leaves = 2", "leaves = \"two\""),
            "4:10: `leaves` is \"two\"; allowed: a whole number from 1 to 8",
        ),
        (with("leaves = 3"), "5:1: duplicate key `leaves`; allowed: each field once in its table"),
        (TEXT.replace("two-tiers", "ring"), "3:8: `kind` is \"ring\"; allowed: \"two-tiers\", \"drawn\""),
        (
            TEXT.replace("kind = \"two-tiers\"", ""),
            "2:1: missing field `kind` in [shape]; allowed: \"two-tiers\", \"drawn\"",
        ),
        (with("file = \"f\""), "5:1: `file` does not apply to kind `two-tiers`; allowed: kind, leaves, latency_us"),
        (with("latency_us = 10.5"), "5:14: `latency_us` is 10.5; allowed: 0 to 10"),
        (with("latency_us = nan"), "5:14: `latency_us` is nan; allowed: 0 to 10"),
        (TEXT.replace("\"x\"", "\"\""), "1:8: `name` is \"\"; allowed: text"),
        (
            format!("x = 1\n{TEXT}"),
            "1:1: unknown field `x` at the top level; allowed: name, shape, transport, event, length",
        ),
        (TEXT.replace("name = \"x\"", ""), "1:1: missing field `name` at the top level; allowed: text"),
        (with("[transport]\nreps = 3"), "6:8: `reps` is 3; allowed: a table"),
        (with("[transport]\nreps.on = 1"), "6:11: `on` is 1; allowed: true, false"),
        (
            with("[transport]\nreps.x = 1"),
            "6:6: unknown field `x` in [transport.reps]; allowed: buffer, on, wait_bytes",
        ),
        (with("[transport]\nbalancer = \"x\""), "6:12: `balancer` is \"x\"; allowed: one or a list of \"paper\", "),
        (with("[transport]\nbalancer = []"), "6:12: `balancer` is []; allowed: one or a list of"),
        (with("[transport]\nbalancer = [\"paper\", 7]"), "6:22: `balancer` is 7; allowed: \"paper\", "),
        (with("[transport]\nshare = 3"), "6:9: `share` is 3; allowed: \"auto\", or 0.5 to 2"),
        (
            with("[transport]\nreps.wait_bytes = \"1 mib\""),
            "6:19: `wait_bytes` is \"1 mib\" (did you mean `1 MiB`?); allowed: \"auto\", or 0 to 1000000",
        ),
        (
            with("[transport]\nreps.wait_bytes = \"1 k\""),
            "6:19: `wait_bytes` is \"1 k\" (suffixes: B, kB, MB, GB, KiB, MiB, GiB); allowed: \"auto\", or 0 to 1000000",
        ),
        (
            with("[transport]\nreps.wait_bytes = \"1 MiB\""),
            "6:19: `wait_bytes` is \"1 MiB\"; allowed: \"auto\", or 0 to 1000000",
        ),
        (format!("length = \"1 bd\"\n{TEXT}"), "1:10: `length` is \"1 bd\"; allowed: \"auto\", or \"1 bdp\""),
        (with("[[event]]\naction = \"down\""), "5:1: missing field `link` in [[event]]; allowed: text"),
        (
            with("[[event]]\nlink = \"a\"\naction = \"rate\""),
            "5:1: missing field `factor` in [[event]]; allowed: 0.001 to 0.999",
        ),
        (with("[event]\nlink = \"a\""), "5:1: `event` is [event]; allowed: a list of tables"),
    ];
    for (text, message) in cases {
        let shown = read(&text, &[]).expect_err(&text).to_string();
        assert!(shown.starts_with(&format!("dir/x.toml:{message}")) && shown.contains("allowed: "), "{text}\n{shown}");
    }
}

/// Invalid TOML is reported with its position, an unreadable file without a line number.
#[test]
fn invalid_unreadable_and_missing_files_are_distinguished() {
    let shown = read(&TEXT.replace("leaves = 2", "leaves = "), &[]).unwrap_err().to_string();
    assert!(shown.starts_with("dir/x.toml:4:10: not TOML: "), "{shown}");
    let shown = Document::load(Path::new("/dev/null/x.toml")).unwrap_err().to_string();
    assert!(shown.starts_with("/dev/null/x.toml: cannot be read: "), "{shown}");
    let shown = Document::load(Path::new("no/x.toml")).unwrap_err().to_string();
    assert!(shown.starts_with("no/x.toml: no such file; `spray init FILE` creates"), "{shown}");
}

#[test]
fn errors_in_assignments_name_the_assignment() {
    let cases = [
        ("transport.reps.buffer=9", "`buffer` is 9; allowed: a whole number from 1 to 8"),
        (
            "transport.reps.bufer=9",
            "unknown field `bufer` in [transport.reps] (did you mean `buffer`?); allowed: buffer, ",
        ),
        ("transport.cc.x=9", "unknown field `cc` in [transport]; allowed: balancer, "),
        ("shape.kind=two-tier", "`kind` is two-tier (did you mean `two-tiers`?); allowed: "),
        ("shape.kind=ring", "`kind` is ring; allowed: \"two-tiers\""),
        ("name.x=1", "`x` does not exist in `name`; allowed: "),
        ("event.3.link=1", "`event` has 0 entries; allowed: `event.+`, which adds one"),
        ("event.x.link=1", "`event` is a table; allowed: a list of tables"),
        ("event.+={link = \"d\"}", "missing field `action` in [[event]]; allowed: \"down\""),
        ("event.+={link = \"d\"", "; allowed: a value in TOML"),
        ("shape={kind = \"drawn\"}", "missing field `file` in [shape]; allowed: text"),
        ("buffer", "not an assignment; allowed: PATH=VALUE"),
        ("=3", "not an assignment; allowed: PATH=VALUE"),
        ("a.b=", "not an assignment; allowed: PATH=VALUE"),
    ];
    for (assignment, message) in cases {
        let shown = read(TEXT, &[assignment]).expect_err(assignment).to_string();
        assert!(
            shown.starts_with(&format!("--set {assignment}: ")) && shown.contains(message),
            "{assignment}\n{shown}"
        );
    }
}

#[test]
fn errors_between_fields_name_the_position() {
    let mut document = document(TEXT);
    assert_eq!(document.error("shape.leaves", "odd").to_string(), "dir/x.toml:4:10: odd");
    assert_eq!(document.error("shape.spines", "odd").to_string(), "dir/x.toml:2:1: odd");
    assert!(!document.is_assigned("shape") && document.folder("shape.file") == Path::new("dir"));
    document.assign("shape.leaves", "3", "--leaves 3").unwrap();
    assert_eq!(document.error("shape.leaves", "odd").to_string(), "--leaves 3: odd");
    assert!(document.is_assigned("shape") && document.folder("shape.leaves") == Path::new(""));
}

#[test]
fn the_schema_is_closed_and_allows_auto() {
    let schema = schema::<Top>();
    let transport = &schema["properties"]["transport"];
    assert_eq!((&schema["additionalProperties"], &transport["additionalProperties"]), (&json!(false), &json!(false)));
    let share = json!({
        "description": "Shares | ratios.",
        "anyOf": [{ "type": "number", "format": "double", "maximum": 2.0, "minimum": 0.5 }, { "const": "auto" }],
        "default": "auto",
    });
    assert_eq!(transport["properties"]["share"], share);
    assert_eq!(transport["properties"]["reps"]["properties"]["buffer"]["description"], "Entropy values cached.");
    let variants = schema["properties"]["event"]["items"]["oneOf"].as_array().unwrap();
    assert!(variants.iter().all(|variant| variant["properties"]["link"]["type"] == "string"));
    assert_eq!(variants[1]["required"], json!(["action", "factor", "link"]));
}

#[test]
fn the_documentation_has_a_table_for_each_table() {
    let text = markdown::<Top>();
    for part in [
        "\n## Top level\n\n| field | unit | default | allowed | meaning |\n|---|---|---|---|---|\n",
        "| `name` |  | required | text | Its name. |\n",
        "\n## `[shape]`\n\nWhat it is built of.\n\n",
        "| `kind` |  | required | \"two-tiers\", \"drawn\" | `two-tiers`: Of two tiers. `drawn`: As drawn. |\n",
        "| `leaves` |  | required | a whole number from 1 to 8 | How many leaves. Only with two-tiers. |\n",
        "| `latency_us` | us | 1 | 0 to 10 | Time through it. |\n",
        "| `share` |  | \"auto\" | \"auto\", or 0.5 to 2 | Shares \\| ratios. |\n",
        "| `balancer` |  | \"ultra-ethernet\" | one or a list of \"paper\", \"ultra-ethernet\", \"6\", \"six\" | One after the other. |\n",
        "`6`: As a number. `six`: The same as `6`. |\n",
        "\n## `[transport.reps]`\n\nRecycles.\n\n",
        "| `buffer` |  | 8 | a whole number from 1 to 8 | Entropy values cached. |\n",
        "\n## `[[event]]`\n\nWhat happens.\n\n| field |",
        "| `factor` |  | required | 0.001 to 0.999 | What is left. Only with rate. |\n",
    ] {
        assert!(text.contains(part), "{part}\nis not in\n{text}");
    }
    let meanings = Meanings::of::<Top>();
    assert_eq!(meanings.get("transport.reps.buffer").as_deref(), Some("Entropy values cached."));
    assert_eq!(meanings.get("event.0.factor").as_deref(), Some("What is left. Only with rate."));
    assert_eq!(meanings.get("transport.reps.bufer"), None);
    assert_eq!(meanings.get("event.factor"), meanings.get("event.0.factor"), "a path without an index");
    assert_eq!(meanings.get("event.nonsense"), None);
    assert_eq!(meanings.named("buffer"), ["transport.reps.buffer"]);
    let words = meanings.words();
    let rate = words.iter().find(|own| own.word == "rate").unwrap();
    assert_eq!((rate.path.as_str(), rate.is_kind, rate.settings.len()), ("event.action", true, 1));
    assert_eq!(rate.settings[0].name, "factor");
    assert!(words.iter().any(|own| own.word == "drawn" && own.meaning == "As drawn."), "{words:?}");
}

#[test]
fn byte_sizes_accept_binary_suffixes_only() {
    let bytes = |text: &str| text.parse().ok().map(ByteSize::bytes);
    let good = [("0", 0), ("1_500", 1500), ("4 MiB", 4 << 20), ("1.5KiB", 1536), ("2 GB", 2_000_000_000), ("7 B", 7)];
    good.iter().for_each(|(text, value)| assert_eq!(bytes(text), Some(*value), "{text}"));
    for bad in ["", "MiB", "1.5", "1.0005 kB", "4 mib", "-1", "1e3", "4 MiB x", "99999999 GiB"] {
        assert_eq!(bytes(bad), None, "{bad}");
    }
}

/// Expands a document with `lines` in `[transport]` into its variants.
fn variants(lines: &str, most: usize) -> Result<Vec<Document>, Error> {
    let text = format!("name = \"x\"\n[shape]\nkind = \"two-tiers\"\nleaves = [2, 4]\n[transport]\n{lines}");
    Document::parse(Path::new("dir/s.toml"), &text).unwrap().variants::<Top>(most)
}

#[test]
fn lists_instead_of_a_value_are_axes() {
    let plain = document("name = \"x\"\n[shape]\nkind = \"two-tiers\"\nleaves = 2\n");
    assert_eq!(plain.variants::<Top>(1).unwrap(), std::slice::from_ref(&plain));
    let all = variants("", 10).unwrap();
    let leaves = |document: &Document| match document.read::<Top>().unwrap().shape {
        Kind::TwoTiers(Tiers { leaves, .. }) => leaves,
        Kind::Drawn { .. } => 0,
    };
    assert_eq!(all.iter().map(leaves).collect::<Vec<_>>(), [2, 4]);
    let axis = |value| [Axis { path: "shape.leaves".into(), value: AxisValue::Whole(value) }];
    assert_eq!((all[0].axes(), all[1].axes()), (&axis(2)[..], &axis(4)[..]));
}

#[test]
fn a_wrong_value_of_an_axis_is_named_with_its_place() {
    let error_of = |text: &str, most| {
        let document = Document::parse(Path::new("s.toml"), text).unwrap();
        let all = document
            .variants::<Top>(most)
            .and_then(|all| all.iter().map(Document::read::<Top>).collect::<Result<Vec<_>, _>>());
        all.unwrap_err().to_string()
    };
    let with = |leaves: &str| format!("name = \"x\"\n[shape]\nkind = \"two-tiers\"\nleaves = {leaves}\n");
    assert_eq!(error_of(&with("[2, 9]"), 10), "s.toml:4:14: `leaves` is 9; allowed: a whole number from 1 to 8");
    assert_eq!(error_of(&with("[]"), 10), "s.toml:4:10: `leaves` is []; allowed: a whole number from 1 to 8");
    assert_eq!(error_of(&with("[2, 3, 2]"), 10), "s.toml:4:17: the list has 2 twice; allowed: each value once");
    let many = "s.toml:4:10: this list leads to 3 combinations of values; allowed: at most 2";
    assert_eq!(error_of(&with("[2, 3, 4]"), 2), many);
    // The tag that selects a table's variant cannot be an axis.
    assert!(error_of("name = \"x\"\n[shape]\nkind = [\"drawn\", \"two-tiers\"]\n", 10).contains("`kind` is ["));
}

#[test]
fn assigned_lists_are_axes_too_and_combine() {
    let mut document = document("name = \"x\"\n[shape]\nkind = \"two-tiers\"\nleaves = [2, 4]\n");
    document.assign("shape.latency_us", "[1, 2.5]", "--set shape.latency_us=[1, 2.5]").unwrap();
    let all = document.variants::<Top>(4).unwrap();
    let words =
        |document: &Document| document.axes().iter().map(|axis| axis.value.to_string()).collect::<Vec<_>>().join(" ");
    assert_eq!(all.iter().map(words).collect::<Vec<_>>(), ["2 1", "2 2.5", "4 1", "4 2.5"]);
    assert_eq!(all[0].axes()[1].value, AxisValue::Number(1.0), "all values of an axis are of one kind");
}

/// A list of bare words is accepted as a single bare word is, because the shell removes quotes.
#[test]
fn assigned_lists_take_words_without_quotes() {
    let set = |value: &str| {
        let mut document = document("name = \"x\"\n[shape]\nkind = \"two-tiers\"\nleaves = 2\n");
        document.assign("name", value, &format!("--set name={value}")).map(|()| {
            let all = document.variants::<Top>(4).unwrap();
            all.iter().map(|one| one.read::<Top>().unwrap().name).collect::<Vec<_>>()
        })
    };
    for value in ["[ecmp,ops]", "[ecmp, ops]", "[ ecmp, \"ops\", ]", "[\"ecmp\", \"ops\"]"] {
        assert_eq!(set(value).unwrap(), ["ecmp", "ops"], "{value}");
    }
    for value in ["[ecmp,,ops]", "[ecmp", "[[ecmp],ops]", "[\"ecmp, ops\"x]"] {
        assert!(set(value).unwrap_err().to_string().contains("allowed: a value in TOML"), "{value}");
    }
}

#[test]
fn resolved_settings_read_back_the_same() {
    let mut document = Document::parse(
        Path::new("dir/s.toml"),
        "name = \"x\"\n[shape]\nkind = \"drawn\"\nfile = \"f.topo\"\n[[event]]\nlink = \"a->b\"\naction = \"down\"\n[[event]]\nlink = \"c \\\"d\\\"\"\naction = \"down\"\n",
    )
    .unwrap();
    document.assign("name", "5", "--set name=5").unwrap();
    let text = toml::to_string(&document.resolved::<Top>().unwrap()).unwrap();
    let again = Document::parse(Path::new("elsewhere/scenario.toml"), &text).unwrap();
    let (mut original, found): (Top, Top) =
        (document.read().unwrap(), again.read().unwrap_or_else(|error| panic!("{error}\n{text}")));
    let there = std::path::absolute("dir/f.topo").unwrap();
    if let Kind::Drawn { file, .. } = &mut original.shape {
        *file = there.display().to_string();
    }
    assert_eq!(found, original, "{text}");
    assert_eq!(document.files::<Top>(), [Path::new("dir/f.topo")]);
}

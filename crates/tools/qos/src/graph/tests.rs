//! Tests the trees of real tc output (testdata/tc), as JSON and as text, and of input that tc never prints.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::model::{Join, Kind, Tree};
use super::{grow, layout, ours, record, svg, text, units};

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../testdata/tc")
}

/// tc's saved output for `interface` in the form `extension`: (parent, text).
fn printed(interface: &str, extension: &str) -> Vec<(Option<String>, String)> {
    let mut all = Vec::new();
    for what in ["qdisc", "class"] {
        let path = testdata().join(format!("{interface}-{what}.{extension}"));
        all.extend(std::fs::read_to_string(path).ok().map(|text| (None, text)));
    }
    for parent in ["1", "5", "30", "ffff", "ingress", "egress"] {
        let path = testdata().join(format!("{interface}-filter-{parent}.{extension}"));
        let parent = match parent.ends_with("gress") {
            true => parent.to_owned(),
            false => format!("{parent}:"),
        };
        let text = std::fs::read_to_string(path).ok();
        all.extend(text.map(|text| (Some(parent), text)));
    }
    all
}

fn tree(interface: &str, extension: &str) -> Tree {
    let mut records = Vec::new();
    for (parent, text) in printed(interface, extension) {
        records.extend(record::read(&text, parent.as_deref()));
    }
    grow::grow(&records, interface)
}

const INTERFACES: [&str; 12] = [
    "a0", "b0", "c1", "d0", "d1", "d2", "d3", "d4", "d5", "m0", "m1", "w0",
];

/// How often each handle occurs in tc's text, counted without the parser under test.
fn handles(interface: &str) -> BTreeMap<(&'static str, String), usize> {
    let mut counts = BTreeMap::new();
    for (_, text) in printed(interface, "txt") {
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let handle = match words[0] {
                "qdisc" => ("qdisc", words[2].to_owned()),
                "class" => ("class", words[2].to_owned()),
                "filter" => {
                    let mut pairs = words.windows(2);
                    let pair = pairs.find(|pair| pair[0] == "fh" || pair[0] == "handle");
                    match pair {
                        Some(pair) => ("filter", pair[1].to_owned()),
                        None => continue,
                    }
                }
                _ => continue,
            };
            *counts.entry(handle).or_insert(0) += 1;
        }
    }
    counts
}

#[test]
fn every_queue_that_a_policy_can_choose_is_drawn_with_its_kind_and_options() {
    let choices = qos::registry::entries().into_iter();
    for choice in choices.flat_map(|entry| entry.choices) {
        let template = choice.offer().template;
        let policy = format!("[link]\nup = \"9mbit\"\n[shape]\ntemplate = \"{template}\"\n");
        let (policy, _) = qos::policy::Policy::parse(&policy).expect(template);
        let spec = policy.up_spec();
        let disciplines = qos::tree::Tree::new(&spec, 0, base::Instant::ZERO).expect(template);
        let leaf = disciplines.walk().pop().expect("a leaf");
        let tree = ours::grow(&policy, template).expect(template);
        let page = text::terminal(&tree);
        let title = format!("{} {}", leaf.kind, leaf.handle);
        assert!(page.contains(&title), "{title:?} is not in {page}");
        let drawn = tree.nodes.iter().find(|node| node.title == title);
        assert!(drawn.is_some_and(|node| node.lines.contains(&units::line(&leaf.options))));
        assert!(svg::svg(&tree).contains(&title), "{title:?}");
    }
}

#[test]
fn each_qdisc_class_and_filter_that_tc_printed_is_drawn_once() {
    for interface in INTERFACES {
        let expected = handles(interface);
        assert!(!expected.is_empty(), "{interface}");
        for extension in ["json", "txt"] {
            let tree = tree(interface, extension);
            let mut found = BTreeMap::new();
            for node in &tree.nodes {
                let what = match node.kind {
                    Kind::Qdisc => "qdisc",
                    Kind::Class => "class",
                    Kind::Filter => "filter",
                    Kind::Unknown => panic!("{interface} {extension}: {node:?}"),
                    _ => continue,
                };
                *found.entry((what, node.handle.clone())).or_insert(0) += 1;
            }
            assert_eq!(found, expected, "{interface} {extension}");
            let held = tree.edges.iter().filter(|edge| edge.join == Join::Holds);
            assert_eq!(held.count() + 1, tree.nodes.len(), "one place each");
        }
    }
}

#[test]
fn each_tin_of_cake_has_its_delays_drops_and_marks() {
    let saved = |extension: &str| {
        let path = testdata().join(format!("d0-qdisc.{extension}"));
        std::fs::read_to_string(path).unwrap()
    };
    // The voice tin of the saved output, with traffic.
    let (mut json, mut text) = (saved("json"), saved("txt"));
    let at = json.rfind("\"threshold_rate\":312500").unwrap();
    let mut voice = json.split_off(at);
    for (key, value) in [
        ("sent_bytes", 41_234),
        ("sent_packets", 57),
        ("backlog_bytes", 3_028),
        ("peak_delay_us", 12_300),
        ("avg_delay_us", 1_500),
        ("base_delay_us", 21),
        ("drops", 4),
        ("ecn_mark", 2),
    ] {
        voice = voice.replacen(&format!("\"{key}\":0"), &format!("\"{key}\":{value}"), 1);
    }
    json += &voice;
    for (key, cell) in [
        ("bytes ", "41234"),
        ("pkts ", "57"),
        ("pk_delay", "12.3ms"),
        ("av_delay", "1.5ms"),
        ("sp_delay", "21us"),
        ("drops", "4"),
        ("marks", "2"),
        ("backlog  ", "3028b"),
    ] {
        let at = text.find(&format!("\n  {key}")).unwrap() + 1;
        let end = at + text[at..].find('\n').unwrap();
        let start = end - text[at..end].split_whitespace().last().unwrap().len();
        text.replace_range(start..end, cell);
    }
    for (what, saved) in [("json", &json), ("text", &text)] {
        let tree = grow::grow(&record::read(saved, None), "eth0");
        let cake = tree.nodes.iter().find(|node| node.title == "cake 40:");
        let cake = cake.expect(what);
        let below: Vec<&str> = tree.children()[cake.id]
            .iter()
            .map(|id| tree.nodes[*id].title.as_str())
            .collect();
        assert_eq!(below, ["Bulk", "Best Effort", "Voice"], "{what}");
        let numbers = cake.numbers.expect("the sums");
        assert_eq!((numbers.backlog_bytes, numbers.backlog_packets), (0, 0));
        let page = text::terminal(&tree);
        let words = "sent 57 p, 41.2 kB \u{b7} dropped 4 \u{b7} ecn_mark 2 \u{b7} \
                     delay 1.5 ms, peak 12.3 ms, sparse 21 us \u{b7} backlog 3028 B";
        assert!(page.contains(words), "{what}: {page}");
        assert!(
            page.contains("delay 0 us, peak 0 us, sparse 0 us"),
            "{page}"
        );
    }
}

#[test]
fn cake_under_load_shows_what_tc_printed() {
    let drawn = text::terminal(&tree("c1", "txt"));
    assert!(
        drawn.contains(
            "sent 60 p, 56.5 kB · dropped 5 · ecn_mark 0 · delay 8.9 ms, peak 234.0 ms, sparse 8.9 ms · backlog 36.7 kB"
        ),
        "{drawn}"
    );
    for tin in ["Bulk", "Best Effort", "Video", "Voice"] {
        assert!(drawn.contains(&format!("── {tin}\n")), "{drawn}");
    }
}

#[test]
fn json_and_text_give_the_same_tree() {
    let shape = |tree: &Tree| {
        let title = |id: usize| tree.nodes[id].title.clone();
        let mut edges: Vec<String> = tree
            .edges
            .iter()
            .map(|edge| format!("{} {:?} {}", title(edge.from), edge.join, title(edge.to)))
            .collect();
        let u32_rules = tree
            .nodes
            .iter()
            .filter(|node| node.title.starts_with("u32"));
        edges.extend(u32_rules.map(|node| {
            // The JSON of a police action lacks its rate.
            let lines = node.lines.iter().filter(|line| !line.contains("action"));
            format!("{} {:?}", node.title, lines.collect::<BTreeSet<_>>())
        }));
        let defaults = tree.nodes.iter().filter(|node| node.is_default);
        edges.extend(defaults.map(|node| format!("default {}", node.title)));
        edges.sort();
        edges
    };
    for interface in INTERFACES {
        let (json, text) = (tree(interface, "json"), tree(interface, "txt"));
        assert_eq!(shape(&json), shape(&text), "{interface}");
    }
}

#[test]
fn defaults_tables_chains_sides_and_targets_are_shown() {
    let drawn = |interface| text::terminal(&tree(interface, "json"));
    let d0 = drawn("d0");
    for line in [
        "htb 1:30  [default]",
        "u32 800::801 pref 5 ip  asks 3:",
        "u32 3:5:800 pref 5 ip  -> 1:10",
        "fw 0x7 pref 6 ip  -> 1:30",
        "flow 0x9 pref 7 ip  -> 1:10",
        "flower 0x1 pref 8 ip  -> 1:20",
        "rate 2Mbit burst 10 KiB lat 50ms",
        "memory_limit 32 MiB",
        "limit 10 packets",
        "src 10.0.0.0/8",
        "dst port 22",
    ] {
        assert!(d0.contains(line), "{line}\n{d0}");
    }
    let d1 = drawn("d1");
    for line in [
        "to interface d2",
        "asks chain 5",
        "action skbedit",
        "action police drop",
        "all packets",
        "src 1.2.3.4",
        "sent 1 p, 56 B",
    ] {
        assert!(d1.contains(line), "{line}\n{d1}");
    }
    let as_text = text::terminal(&tree("d1", "txt"));
    let police = "action police rate 1Mbit burst 10 KiB mtu 2 KiB drop";
    assert!(as_text.contains(police), "{as_text}");
    assert!(
        !as_text.contains("priomap") && !as_text.contains("---"),
        "{as_text}"
    );
    assert!(drawn("d3").contains("hfsc 7:1  [default]"));
    assert!(drawn("d4").contains("── egress\n"));
    assert_eq!(drawn("m0").matches("fq_codel 0:").count(), 4);
}

#[test]
fn what_is_not_understood_is_drawn_as_it_was_written() {
    let records = record::read("[{\"strange\":{\"a\":7}}]\nnever seen 1: before\n", None);
    let drawn = text::terminal(&grow::grow(&records, "eth0"));
    assert!(drawn.contains("strange a 7"), "{drawn}");
    assert!(drawn.contains("never seen 1: before"), "{drawn}");
}

#[test]
fn a_default_class_that_is_not_there_is_told() {
    let text = r#"[{"kind":"htb","handle":"1:","root":true,"options":{"default":"0x40"}}]
[{"class":"htb","handle":"1:1","root":true,"rate":1250000,"ceil":2500000}]"#;
    let drawn = text::terminal(&grow::grow(&record::read(text, None), "eth0"));
    assert!(
        drawn.contains("default 1:40: there is no such class"),
        "{drawn}"
    );
    assert!(drawn.contains("rate 10Mbit"), "{drawn}");
    assert!(drawn.contains("ceil 20Mbit"), "{drawn}");
}

#[test]
fn a_ring_of_parents_ends() {
    let text = "class htb 1:1 parent 1:2 prio 0\nclass htb 1:2 parent 1:1 prio 0\nclass htb 1:3 parent 1:3\n";
    let tree = grow::grow(&record::read(text, None), "eth0");
    assert_eq!(text::terminal(&tree).lines().count(), 6);
}

/// The records of interface `name` whose saved output names no interface.
fn of_interface(name: &str, extension: &str) -> Vec<record::Record> {
    let mut records = Vec::new();
    for (parent, text) in printed(name, extension) {
        records.extend(record::read(&text, parent.as_deref()));
    }
    for record in &mut records {
        record.dev = Some(name.to_owned());
    }
    records
}

#[test]
fn filters_of_a_shared_block_are_drawn_once() {
    for extension in ["json", "txt"] {
        let mut records = of_interface("a0", extension);
        records.extend(of_interface("b0", extension));
        let tree = grow::grow(&records, "a0");
        let drawn = text::terminal(&tree);
        assert_eq!(
            drawn.matches("u32 800::800 pref 1 ip").count(),
            1,
            "{drawn}"
        );
        assert_eq!(
            drawn.matches("matchall 0x1 pref 3 all").count(),
            1,
            "{drawn}"
        );
        // Once in its place, and once as what b0 asks.
        assert_eq!(drawn.matches("block 22").count(), 2, "{drawn}");
        assert!(drawn.contains("ingress  asks block 22"), "{drawn}");
        // What the police actions dropped, of 40 packets each.
        assert!(
            drawn.contains("sent 40 p, 29.1 kB · dropped 36 · overlimits 36"),
            "{drawn}"
        );
        assert!(drawn.contains("sent 40 p, 5120 B"), "{drawn}");
        let roots = tree.roots();
        let names: Vec<&str> = roots
            .iter()
            .map(|id| tree.nodes[*id].title.as_str())
            .collect();
        assert_eq!(names, ["a0", "b0"]);
    }
    let saved = std::fs::read_to_string(testdata().join("block-22.txt")).expect("a file");
    let drawn = text::terminal(&grow::grow(&record::read(&saved, Some("block22")), "eth0"));
    assert!(drawn.contains("└── block 22\n"), "{drawn}");
    assert!(
        drawn.contains("action police rate 2Mbit burst 20 KiB mtu 2 KiB drop/pipe"),
        "{drawn}"
    );
}

#[test]
fn both_directions_of_a_policy_are_drawn_with_names_and_the_default() {
    let policy = std::fs::read_to_string(testdata().join("home.toml")).expect("a file");
    let (policy, _) = qos::policy::Policy::parse(&policy).expect("a policy");
    let tree = ours::grow(&policy, "home.toml").expect("a tree");
    let drawn = text::terminal(&tree);
    assert_eq!(drawn.matches("htb 1:20  [default]").count(), 2, "{drawn}");
    // The class, and its rule.
    assert_eq!(drawn.matches("“backups”").count(), 4, "{drawn}");
    // Rules of a section without a share go to a class with another name.
    let rules = drawn.lines().filter(|line| line.contains("“ssh”"));
    assert!(rules.count() >= 2, "{drawn}");
    assert_eq!(drawn.matches("dscp ef  -> 1:11").count(), 2, "{drawn}");
    assert_fits(&tree);
    assert_well_formed(&svg::svg(&tree));
}

/// Boxes do not overlap, all are inside the picture, and each is large enough for its text.
fn assert_fits(tree: &Tree) {
    let layout = layout::lay_out(tree, 84);
    for (at, one) in layout.places.iter().enumerate() {
        assert!(one.x + one.width <= layout.width && one.y + one.height <= layout.height);
        let rows = u32::try_from(one.lines.len()).expect("few lines");
        assert!(rows * layout::LINE + layout::PAD <= one.height, "{one:?}");
        for line in &one.lines {
            let characters = u32::try_from(line.chars().count()).expect("a short line");
            assert!(characters * 73 / 10 + layout::PAD <= one.width, "{one:?}");
        }
        for other in &layout.places[at + 1..] {
            let is_beside = one.x + one.width < other.x || other.x + other.width < one.x;
            let is_above = one.y + one.height < other.y || other.y + other.height < one.y;
            assert!(is_beside || is_above, "{one:?} touches {other:?}");
        }
    }
}

#[test]
fn boxes_never_touch_and_hold_their_text() {
    for interface in INTERFACES {
        let mut tree = tree(interface, "json");
        assert_fits(&tree);
        tree.has_rates = true;
        assert_fits(&tree);
        assert_well_formed(&svg::svg(&tree));
    }
    let mut text = String::from("qdisc htb 1: root\n");
    for class in 1..150 {
        text += &format!("class htb 1:{class:x} root prio 0 rate {class}Mbit\n");
        if class % 5 == 0 && class < 60 {
            text += &format!(
                "class htb 1:{:x} parent 1:{class:x} prio 0\n",
                1_000 + class
            );
        }
    }
    let tree = grow::grow(&record::read(&text, None), "eth0");
    assert_fits(&tree);
    let flat = text.lines().filter(|line| !line.contains("parent"));
    let flat = flat.collect::<Vec<_>>().join("\n");
    let wide = grow::grow(&record::read(&flat, None), "eth0");
    assert_fits(&wide);
    let mut rated = wide.clone();
    rated.has_rates = true;
    assert_fits(&rated);
    let layout = layout::lay_out(&wide, 84);
    assert!(
        layout.height < 2_000,
        "149 leaves stand in a grid: {}",
        layout.height
    );
}

/// Tags are closed in order, and text contains no unescaped markup.
fn assert_well_formed(svg: &str) {
    let mut open = Vec::new();
    let mut rest = svg;
    while let Some(at) = rest.find('<') {
        assert!(!rest[..at].contains('>') || open.last() == Some(&"style"));
        let end = at + rest[at..].find('>').expect("a tag ends");
        let tag = &rest[at + 1..end];
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        let name = tag.split(' ').next().expect("a name");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name));
        } else if !tag.ends_with('/') {
            open.push(name);
        }
        rest = &rest[end + 1..];
    }
    assert_eq!(open, Vec::<&str>::new());
}

/// Parses the part of dot's grammar that is written: `digraph ID { (ID = ID | node LIST | ID [-> ID] [LIST]) ; }`.
fn assert_dot(dot: &str) {
    let mut tokens = Vec::new();
    let mut chars = dot.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '"' => {
                loop {
                    match chars.next().expect("a string ends") {
                        '"' => break,
                        '\\' => {
                            let next = chars.next().expect("something is escaped");
                            assert!(['\\', '"', 'l'].contains(&next), "{next}");
                        }
                        other => assert!(!other.is_control()),
                    }
                }
                tokens.push("S".to_owned());
            }
            '-' => {
                assert_eq!(chars.next(), Some('>'));
                tokens.push("->".to_owned());
            }
            '{' | '}' | '[' | ']' | '=' | ';' | ',' => tokens.push(char.to_string()),
            space if space.is_whitespace() => {}
            word => {
                assert!(word.is_ascii_alphanumeric(), "{word}");
                while chars.next_if(char::is_ascii_alphanumeric).is_some() {}
                tokens.push("S".to_owned());
            }
        }
    }
    let text = tokens.concat();
    let body = text.strip_prefix("SS{").and_then(|it| it.strip_suffix('}'));
    for statement in body.expect("a graph").split_terminator(';') {
        let (head, list) = match statement.split_once('[') {
            Some((head, list)) => (head, list.strip_suffix(']').expect("a list ends")),
            None => (statement, "S=S"),
        };
        assert!(["S", "S->S", "S=S"].contains(&head), "{statement}");
        assert!(list.split(',').all(|pair| pair == "S=S"), "{statement}");
    }
}

#[test]
fn hostile_names_change_no_markup() {
    let mut tree = Tree::default();
    let name = "a\"<b>&\\\u{1b}[31m\n]]>--;\\";
    let node = tree.add(Kind::Unknown, name, name);
    tree.nodes[node].lines.push(name.to_owned());
    tree.title = name.to_owned();
    assert_well_formed(&svg::svg(&tree));
    assert_dot(&text::dot(&tree));
    assert!(!text::terminal(&tree).contains('\u{1b}'));
}

#[test]
fn pictures_and_dot_are_well_formed() {
    for interface in INTERFACES {
        let tree = tree(interface, "json");
        assert_well_formed(&svg::svg(&tree));
        assert_dot(&text::dot(&tree));
        let json: serde_json::Value = serde_json::from_str(&text::json(&tree)).expect("JSON");
        let nodes = json["tree"]["nodes"].as_array().expect("nodes");
        assert_eq!(nodes.len(), tree.nodes.len());
    }
}

fn draw_all(text: &str) {
    let tree = grow::grow(&record::read(text, Some("1:")), "eth0");
    assert_well_formed(&svg::svg(&tree));
    assert_dot(&text::dot(&tree));
    text::terminal(&tree);
}

proptest! {
    #[test]
    fn no_text_panics(text in "([\\[\\]{}\":,a\\\\\n]|qdisc |class |filter |parent |1:|\"kind\":|\"options\":|\\PC){0,80}") {
        draw_all(&text);
    }

    #[test]
    fn no_damage_to_what_tc_printed_panics(at in any::<prop::sample::Index>(), length in 0_usize..40, with in "[\\[\\]{}\":,0-9a-f ]{0,5}") {
        for (interface, extension) in [("d0", "json"), ("d1", "json"), ("d1", "txt")] {
            for (_, text) in printed(interface, extension) {
                let at = at.index(text.len());
                let end = (at + length).min(text.len());
                prop_assert!(text.is_ascii());
                draw_all(&format!("{}{with}{}", &text[..at], &text[end..]));
            }
        }
    }
}

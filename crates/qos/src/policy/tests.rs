use super::*;
use crate::classify::KeySet;
use crate::fifo::Limit;
use crate::tree::{Classifier, HtbSpec};

fn good(text: &str) -> Policy {
    let (policy, advice) = Policy::parse(text).expect("no fault");
    assert!(advice.is_empty(), "{advice}: {text}");
    policy
}

/// Line, column, key and text of each fault.
fn faults(text: &str) -> Vec<(usize, usize, String, String)> {
    let faults = Policy::parse(text).expect_err("faults");
    told(faults)
}

fn advice(text: &str) -> Vec<(usize, usize, String, String)> {
    told(Policy::parse(text).expect("no fault").1)
}

fn told(faults: Faults) -> Vec<(usize, usize, String, String)> {
    let each = faults.iter().map(|fault| {
        let place = fault.place.expect("a place");
        let text = match fault.remedy.is_empty() {
            true => fault.message.clone(),
            false => format!("{}; {}", fault.message, fault.remedy),
        };
        (place.line, place.column, fault.key.clone(), text)
    });
    each.collect()
}

#[track_caller]
fn assert_one(remarks: &[(usize, usize, String, String)], line: usize, key: &str, part: &str) {
    let [(found_line, _, found_key, text)] = remarks else {
        panic!("not one remark: {remarks:?}");
    };
    assert_eq!((*found_line, found_key.as_str()), (line, key), "{text}");
    assert!(text.contains(part), "{text:?} has no {part:?}");
}

fn htb(spec: Spec) -> HtbSpec {
    match spec {
        Spec::Htb(htb) => htb,
        other => panic!("no htb: {other:?}"),
    }
}

const LINK: &str = "[link]\nup = \"2mbit\"\ndown = \"20mbit\"\n";

#[test]
fn two_rates_are_a_policy() {
    let policy = good(LINK);
    assert_eq!(
        (policy.up_bps(), policy.down_bps()),
        (Some(2_000_000), Some(20_000_000))
    );
    assert_eq!(policy.overhead().on_line(1_500), 1_538);
    let (up, down) = (htb(policy.up_spec()), htb(policy.down_spec()));
    assert_eq!(
        (up.classes[0].rate_bps, up.classes[0].ceil_bps),
        (2_000_000, 2_000_000)
    );
    assert_eq!(up.default, Some(0x20));
    let hosts = |spec: &HtbSpec| match &spec.leaves[0].1 {
        Spec::Fair(fair) => (fair.hosts, fair.codel.target.as_nanos()),
        other => panic!("{other:?}"),
    };
    // The time of 1.5 packets of 1,538 bytes at 2 Mbit/s.
    assert_eq!(hosts(&up), (KeySet::HOST, 9_228_000));
    assert_eq!(hosts(&down), (KeySet::HOST_DST, 5_000_000));
}

#[test]
fn one_direction_alone_leaves_the_other_as_it_is() {
    let policy = good("link.up = \"1mbit\"");
    assert_eq!(policy.down_spec(), Spec::Fifo(Limit::Packets(1_000)));
    let none = good("[shape]\ntemplate = \"none\"");
    assert_eq!(none.up_spec(), Spec::Fifo(Limit::Packets(1_000)));
}

#[test]
fn a_rate_above_the_line_is_refused_and_one_close_to_it_advised_against() {
    let text = |up: &str| format!("[link]\nup = \"{up}\"\nline_up = \"2.5mbit\"\n");
    let found = faults(&text("2.6mbit"));
    assert_one(
        &found,
        2,
        "link.up",
        "2600Kbit is more than the line carries (2500Kbit)",
    );
    assert_eq!(found[0].1, 6, "the column of the value");
    assert_one(
        &advice(&text("2.46mbit")),
        2,
        "link.up",
        "above 98 % of the line",
    );
    good(&text("2.45mbit"));
    let alone = advice("[link]\nup = \"1mbit\"\nline_down = \"5mbit\"");
    assert_one(
        &alone,
        3,
        "link.line_down",
        "give down = \"4750Kbit\" or less",
    );
}

#[test]
fn every_fault_is_told_at_once_with_its_place_and_its_remedy() {
    let text = "[link]\nup = \"fast\"\ndonw = \"19mbit\"\noverhead = \"etherent\"\n[shap]\n[shape]\necn = 1\ntarget = 5\n[[first]]\nproto = \"tpc\"\nprot = 1\n";
    let found = faults(text);
    let places: Vec<_> = found
        .iter()
        .map(|(line, column, key, _)| (*line, *column, key.as_str()))
        .collect();
    assert_eq!(
        places,
        [
            (2, 6, "link.up"),
            (3, 1, "link.donw"),
            (4, 12, "link.overhead"),
            (5, 2, "shap"),
            (7, 7, "shape.ecn"),
            (8, 10, "shape.target"),
            (10, 9, "first[1].proto"),
            (11, 1, "first[1].prot"),
        ]
    );
    let texts: Vec<_> = found.iter().map(|(.., text)| text.as_str()).collect();
    assert_eq!(
        texts,
        [
            "\"fast\" is no rate; write it as tc does: \"2.3mbit\", \"500kbit\", \"1gbit\" (bits) or \"250kbps\" (octets)",
            "unknown key; did you mean down?",
            "\"etherent\" is not known; did you mean \"ethernet\"?",
            "unknown section; did you mean shape?",
            "is an integer; it must be true or false",
            "\"5\" has no unit; is it \"5ms\" or \"5s\"?",
            "\"tpc\" is not known; did you mean \"tcp\"?",
            "unknown key; did you mean proto?",
        ]
    );
}

#[test]
fn a_fault_of_the_syntax_has_its_line_too() {
    let found = faults("[link]\nup = \"1mbit\"\nup = \"2mbit\"\n");
    assert_one(&found, 3, "link.up", "is given twice; give it once");
    assert_eq!(
        faults("[link\nup = 1").first().map(|fault| fault.0),
        Some(1)
    );
    assert_one(&faults(""), 1, "link", "give [link] with up");
    assert_one(
        &faults("[link]\nmtu = 1500"),
        1,
        "link",
        "neither up nor down",
    );
    assert_one(
        &faults("link = 5"),
        1,
        "link",
        "write it as a section: [link]",
    );
}

#[test]
fn a_rule_that_ecn_would_trip_is_told() {
    let rule = |tos: &str| format!("{LINK}[[first]]\ntos = {tos}\n");
    assert!(advice(&rule("0x10")).is_empty());
    // The rule would match all packets of the default class.
    for (tos, right) in [("0x02", "write 0x00/0xfc"), ("0xb9", "write 0xb8/0xfc")] {
        assert_one(&advice(&rule(tos)), 5, "first[1].tos", right);
    }
    assert_one(
        &advice(&rule("\"0x12/0xff\"")),
        5,
        "first[1].tos",
        "two lowest bits are ECN",
    );
    assert_one(
        &advice(&rule("\"0x10/0xff\"")),
        5,
        "first[1].tos",
        "mask has the two lowest bits",
    );
    assert!(advice(&rule("\"0x10/0x1c\"")).is_empty());
    let htb = htb(Policy::parse(&rule("\"0x10/0x1c\""))
        .expect("good")
        .0
        .up_spec());
    let Some(Classifier::Rules(rules)) = htb.classifier else {
        panic!("rules");
    };
    let codes: Vec<_> = rules
        .iter()
        .filter_map(|(rule, _)| rule.dscp)
        .map(|dscp| dscp.value())
        .collect();
    assert_eq!(codes, [4, 12, 20, 28, 36, 44, 52, 60]);
}

#[test]
fn a_port_and_a_host_turn_round_with_the_direction() {
    let text = format!("{LINK}[[first]]\nproto = \"tcp\"\nport = 22\nhost = \"192.0.2.1\"\n");
    let policy = good(&text);
    let rules = |spec| match htb(spec).classifier {
        Some(Classifier::Rules(rules)) => {
            let each = rules
                .iter()
                .map(|(rule, class)| (crate::classifier::describe(rule), *class));
            each.collect::<Vec<_>>()
        }
        other => panic!("{other:?}"),
    };
    let line = |end: &str, port: &str| {
        (
            format!("innermost-{end} 192.0.2.1 innermost-proto 6 innermost-proto-{port} 22"),
            0x10,
        )
    };
    assert_eq!(
        rules(policy.up_spec()),
        [line("src", "src"), line("src", "dst")]
    );
    assert_eq!(
        rules(policy.down_spec()),
        [line("dst", "src"), line("dst", "dst")]
    );
}

#[test]
fn conditions_that_cannot_hold_are_refused() {
    let first = |keys: &str| faults(&format!("{LINK}[[first]]\n{keys}\n"));
    assert_one(
        &first("name = \"a\""),
        4,
        "first[1]",
        "matches every packet",
    );
    assert_one(
        &first("proto = \"icmp\"\nport = 7"),
        5,
        "first[1].proto",
        "protocol 1 has no ports",
    );
    assert_one(
        &first("port = 7\nsrc_port = 8"),
        4,
        "first[1].port",
        "both given",
    );
    assert_one(
        &first("host = \"10.0.0.1\"\nsrc = \"10.0.0.2\""),
        4,
        "first[1].host",
        "both given",
    );
    assert_one(
        &first("port = \"9-8\""),
        5,
        "first[1].port",
        "lower one first",
    );
    assert_one(
        &first("src = \"10.0.0.1/8\""),
        5,
        "first[1].src",
        "the network is 10.0.0.0/8",
    );
    assert_one(
        &first("dscp = \"hi\""),
        5,
        "first[1].dscp",
        "there are cs0 to cs7",
    );
    assert_one(&first("dscp = []"), 5, "first[1].dscp", "empty list");
    assert_one(&first("vlan = 5000"), 5, "first[1].vlan", "0 to 4094");
    let ports: Vec<String> = (1..60).map(|port| port.to_string()).collect();
    let ports = ports.join(",");
    let many = format!("src_port = [{ports}]\ndst_port = [{ports}]");
    assert_one(&first(&many), 4, "first[1]", "more than 1024 rules");
}

#[test]
fn a_section_that_an_earlier_one_hides_is_told() {
    let two = |a: &str, b: &str| advice(&format!("{LINK}[[first]]\n{a}\n[[first]]\n{b}\n"));
    for (a, b) in [
        ("proto = \"tcp\"", "proto = \"tcp\"\nport = 22"),
        ("port = \"1-1023\"", "port = [22, 80]"),
        ("host = \"10.0.0.0/8\"", "host = \"10.1.0.0/16\""),
        ("dscp = [\"ef\", \"cs5\"]", "dscp = \"cs5\"\nmark = 3"),
        ("mark = \"0x10/0xf0\"", "mark = \"0x12/0xff\""),
    ] {
        let line = 6 + a.matches('\n').count();
        assert_one(
            &two(a, b),
            line,
            "first[2]",
            "can never match: line 4 takes",
        );
    }
    for (a, b) in [
        ("proto = \"tcp\"\nport = 22", "proto = \"tcp\""),
        ("host = \"10.0.0.0/8\"", "remote = \"10.1.0.0/16\""),
        (
            "host = \"10.0.0.0/8\"",
            "header = \"outer\"\nhost = \"10.1.0.0/16\"",
        ),
        ("dscp = \"ef\"", "dscp = [\"ef\", \"cs5\"]"),
        ("src = \"::/0\"", "src = \"10.0.0.1\""),
    ] {
        assert_eq!(two(a, b), [], "{a} / {b}");
    }
}

#[test]
fn guarantees_are_added_up() {
    let text = |a: &str, b: &str| {
        format!(
            "{LINK}[[class]]\nname = \"a\"\nrate = \"{a}\"\nport = 1\n[[class]]\nname = \"b\"\nrate = \"{b}\"\nport = 2\n"
        )
    };
    good(&text("50%", "50%"));
    let both = advice(&text("60%", "50%"));
    assert_eq!(both.len(), 2, "up and down: {both:?}");
    assert!(
        both.iter()
            .all(|remark| (remark.0, remark.2.as_str()) == (10, "class[2].rate"))
    );
    assert!(
        both[0]
            .3
            .contains("come to 2200Kbit, more than the link carries up (2Mbit)"),
        "{both:?}"
    );
    let nested = "[[class]]\nname = \"p\"\nrate = \"50%\"\ndirection = \"up\"\n[[class]]\nparent = \"p\"\nrate = \"60%\"\ndirection = \"up\"\nport = 2\n";
    let found = advice(&format!("{LINK}{nested}"));
    assert_one(&found, 10, "class[2].rate", "its parent \"p\" has (1Mbit)");
    let spec = htb(Policy::parse(&format!("{LINK}{nested}"))
        .expect("good")
        .0
        .up_spec());
    assert_eq!(spec.classes[2].parent, Some(0x30));
    assert_eq!(
        spec.leaves.iter().map(|leaf| leaf.0).collect::<Vec<_>>(),
        [0x31, 0x20]
    );
}

#[test]
fn classes_that_do_not_fit_are_refused() {
    let class = |keys: &str| faults(&format!("{LINK}[[class]]\n{keys}\n"));
    assert_one(&class("port = 1"), 4, "class[1].rate", "is missing");
    assert_one(
        &class("rate = \"1mbit\"\nceil = \"500kbit\"\nport = 1\ndirection = \"up\""),
        6,
        "class[1].ceil",
        "less than its rate",
    );
    assert_one(
        &class("rate = \"1%\"\nparent = \"x\"\nport = 1"),
        6,
        "class[1].parent",
        "there is no class \"x\"",
    );
    let twice =
        "name = \"a\"\nrate = \"1%\"\nport = 1\n[[class]]\nname = \"a\"\nrate = \"1%\"\nport = 2";
    assert_one(&class(twice), 9, "class[2].name", "another section's name");
    let none = "[shape]\ntemplate = \"none\"\n[[first]]\nport = 1\n";
    assert_one(
        &faults(none),
        3,
        "first",
        "the template \"none\" orders nothing",
    );
}

#[test]
fn queues_too_long_or_too_short_are_told() {
    let shape = |keys: &str| advice(&format!("[link]\nup = \"2mbit\"\n[shape]\n{keys}\n"));
    assert_one(
        &shape("template = \"pfifo\"\nlimit = 1000"),
        5,
        "shape.limit",
        "take 6152 ms up at 2Mbit",
    );
    assert_one(
        &shape("template = \"fifo\"\nlimit = \"2s\""),
        5,
        "shape.limit",
        "everyone waits",
    );
    assert_one(
        &shape("template = \"pfifo\"\nlimit = 1"),
        5,
        "shape.limit",
        "give 2 packets or more",
    );
    assert_eq!(shape("template = \"pfifo\"\nlimit = 100"), []);
    assert_eq!(shape("template = \"flows\"\nlimit = 10240"), []);
    assert_one(
        &shape("burst = 1000"),
        4,
        "shape.burst",
        "smaller than a packet on the line (1538 octets)",
    );
    let perturb = shape("template = \"sfq\"\nperturb = \"10s\"");
    assert_one(&perturb, 5, "shape.perturb", "a spike of latency");
    assert_one(
        &shape("perturb = \"10s\""),
        4,
        "shape.perturb",
        "has no effect with this template",
    );
    assert_one(
        &shape("template = \"fifo\"\necn = true"),
        5,
        "shape.ecn",
        "\"home\", \"flows\", \"codel\"",
    );
}

#[test]
fn every_template_makes_a_tree() {
    for template in [
        "home", "gamer", "flows", "codel", "sfq", "bands", "fifo", "pfifo",
    ] {
        let text = format!(
            "{LINK}[shape]\ntemplate = \"{template}\"\n[[first]]\nport = 53\n[[first]]\nshare = \"5%\"\ndscp = \"ef\"\n"
        );
        let policy = good(&text);
        for spec in [policy.up_spec(), policy.down_spec()] {
            let tree = Tree::new(&spec, 1, Instant::ZERO).expect("it fits together");
            let classes: Vec<String> = tree
                .walk()
                .into_iter()
                .filter(|node| node.is_class)
                .map(|node| node.handle)
                .collect();
            assert_eq!(classes.len(), 4, "{template}: {classes:?}");
        }
        assert_eq!(policy.class_name(0x11), Some("first[2]"));
        assert_eq!(policy.class_name(0x20), Some("rest"));
        assert_eq!(policy.class_name(0x12), None);
    }
}

#[test]
fn shares_of_the_first_are_their_rates_and_the_rest_has_what_is_left() {
    let text = format!("{LINK}[[first]]\nport = 53\n[[first]]\nshare = \"25%\"\ndscp = \"ef\"\n");
    let up = htb(good(&text).up_spec());
    let rates: Vec<_> = up
        .classes
        .iter()
        .map(|class| (class.minor, class.rate_bps, class.priority))
        .collect();
    assert_eq!(
        rates,
        [
            (1, 2_000_000, 0),
            (0x11, 500_000, 0),
            (0x10, 600_000, 0),
            (0x20, 900_000, 3)
        ]
    );
    let over = format!(
        "{LINK}[shape]\nfirst_share = \"80%\"\n[[first]]\nport = 53\n[[first]]\nshare = \"25%\"\ndscp = \"ef\"\n"
    );
    assert!(
        advice(&over)[0]
            .3
            .contains("the shares come to 2100Kbit of 2Mbit")
    );
}

#[test]
fn no_text_panics() {
    use proptest::prelude::*;
    let words = prop::sample::select(vec![
        "[link]\n",
        "[shape]\n",
        "[[first]]\n",
        "[[class]]\n",
        "up = ",
        "down = ",
        "rate = ",
        "parent = ",
        "name = ",
        "port = ",
        "tos = ",
        "limit = ",
        "burst = ",
        "\"1bit\"\n",
        "\"100tbit\"\n",
        "\"50%\"\n",
        "\"a\"\n",
        "22\n",
        "0xff\n",
        "-1\n",
        "[]\n",
        "[1, \"x\"]\n",
        "{}\n",
        "é",
        "\"\n",
        "1e9\n",
        "true\n",
        "mtu = ",
        "overhead = ",
        "\"0s\"\n",
    ]);
    let texts = prop::collection::vec(words, 0..30);
    proptest!(|(text in texts)| {
        if let Ok((policy, _)) = Policy::parse(&text.concat()) {
            for spec in [policy.up_spec(), policy.down_spec()] {
                prop_assert!(Tree::new(&spec, 1, Instant::ZERO).is_ok());
            }
        }
    });
}

#[test]
fn the_kernels_queue_is_chosen_and_cake_takes_no_classes() {
    let link = "[link]\nup = \"2mbit\"\n";
    assert_eq!(good(link).kernel(), Kernel::default());
    let policy = good(&format!(
        "{link}[kernel]\nqueue = \"cake\"\nnat = true\nwash = true\n"
    ));
    let chosen = Kernel {
        cake: true,
        classifier: Filters::Auto,
        nat: true,
        ack_filter: false,
        wash: true,
    };
    assert_eq!(policy.kernel(), chosen);
    let needs = faults(&format!("{link}[kernel]\nack_filter = true\n"));
    assert_one(&needs, 4, "kernel.ack_filter", "only cake can do this");
    for (name, filters) in [("bpf", Filters::Bpf), ("u32", Filters::U32)] {
        let policy = good(&format!("{link}[kernel]\nclassifier = \"{name}\"\n"));
        assert_eq!(policy.kernel().classifier, filters);
    }
    let both = "[kernel]\nqueue = \"cake\"\nclassifier = \"bpf\"\n";
    let both = faults(&format!("{link}{both}"));
    assert_one(&both, 5, "kernel.classifier", "nothing chooses one");
    let first = "[[first]]\nport = 22\n";
    let classes = faults(&format!("{link}{first}[kernel]\nqueue = \"cake\"\n"));
    assert_one(&classes, 6, "kernel.queue", "cake has no classes");
}

//! Tests trees of policies: their tc lines, their bytes both ways, and what turns one into another.

use proptest::prelude::*;
use qos::policy::Policy;
use tc::compile::{Compiled, Place, compile, ingress, redirection};
use tc::{Abilities, Change, Handle, Object, Tree, Verb, changes, decode, line};

const HOME: &str = r#"
[link]
up = "9.4mbit"
down = "47mbit"
overhead = "pppoe-ptm"
[shape]
first_share = "20%"
[[first]]
name = "ssh"
proto = "tcp"
port = 22
[[first]]
name = "calls"
dscp = ["ef", "va"]
share = "25%"
[[class]]
name = "work"
rate = "20%"
[[class]]
name = "desktop"
parent = "work"
rate = "15%"
host = "192.0.2.0/28"
proto = "tcp"
dst_port = "3000-3389"
[[class]]
name = "far"
parent = "work"
rate = "5%"
remote = "2001:db8:7::/48"
mark = "0x1/0xff"
direction = "up"
"#;

const NONE: Abilities = Abilities {
    fq_codel: false,
    codel: false,
    sfq: false,
    drr: false,
    ets: false,
    bpf: false,
    cake: false,
    ..Abilities::ALL
};

fn policy(text: &str) -> Policy {
    Policy::parse(text).expect("a policy").0
}

fn compiled(text: &str, is_up: bool, abilities: &Abilities) -> Compiled {
    let place = Place {
        is_up,
        header: 14,
        is_redirected: !is_up,
    };
    compile(&policy(text), place, abilities).expect("objects")
}

/// All objects, disciplines first.
fn objects(tree: &Tree) -> Vec<Object> {
    let qdiscs = tree.qdiscs.iter().cloned().map(Object::Qdisc);
    let classes = tree.classes.iter().cloned().map(Object::Class);
    let filters = tree.filters.iter().cloned().map(Object::Filter);
    qdiscs.chain(classes).chain(filters).collect()
}

#[test]
fn the_lines_of_a_policy_are_those_of_the_golden_file() {
    let mut text = String::new();
    let without = Abilities {
        bpf: false,
        ..Abilities::ALL
    };
    for (name, abilities) in [
        ("everything", Abilities::ALL),
        ("no programs", without),
        ("htb and pfifo", NONE),
    ] {
        for is_up in [true, false] {
            let Compiled {
                tree,
                advice,
                class_names,
                filter_names,
                programs,
            } = compiled(HOME, is_up, &abilities);
            assert_eq!(
                class_names.len(),
                tree.classes
                    .iter()
                    .filter(|class| class.handle.major() == 1)
                    .count()
            );
            let filters = tree
                .filters
                .iter()
                .filter(|filter| filter.parent.0 == 1 << 16);
            assert_eq!(filter_names.len(), filters.count());
            assert!(filter_names.iter().all(|name| !name.is_empty()));
            text.push_str(&format!("# {name}, up {is_up}\n"));
            for line in advice {
                text.push_str(&format!("# {line}\n"));
            }
            for change in changes(&Tree::default(), &tree) {
                text.push_str(&line(&change, "eth0", |_| "ifb0".to_owned()));
                text.push('\n');
            }
            for (n, program) in programs.iter().enumerate() {
                // The name has a hash of the instructions, which are crate bpf's.
                text = text.replace(&program.name, &format!("headend-{n}"));
                text.push_str(&format!("# {n} at {}\n", program.parent));
                for words in &program.words {
                    text.push_str(&format!("#   {words}\n"));
                }
            }
        }
    }
    let place = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/apply/home.txt");
    if std::env::var_os("HEADEND_WRITE_GOLDEN").is_some() {
        std::fs::write(place, &text).expect("written");
    }
    assert_eq!(text, std::fs::read_to_string(place).expect("a golden file"));
}

#[test]
fn objects_are_the_same_after_encoding_and_decoding() {
    let mut count = 0;
    for abilities in [Abilities::ALL, NONE] {
        for is_up in [true, false] {
            let mut tree = compiled(HOME, is_up, &abilities).tree;
            tree.push(Object::Qdisc(ingress()));
            tree.push(Object::Filter(redirection(7, 3)));
            for object in objects(&tree) {
                let message = object.message(Verb::Add, 12, None);
                let mut found = decode(message.kind, &message.body).expect("an object");
                // The kernel lists these times a microsecond shorter.
                if let Object::Qdisc(tc::Qdisc {
                    kind: tc::QdiscKind::FqCodel(codel),
                    ..
                }) = &mut found.object
                {
                    codel.target_us -= 1;
                    codel.interval_us -= 1;
                }
                if let Object::Qdisc(qdisc) = &mut found.object {
                    assert!(qdisc.raw.take().is_some());
                }
                assert_eq!((found.index, found.object), (12, object));
                count += 1;
            }
        }
    }
    assert!(count > 100, "{count}");
}

#[test]
fn conditions_that_filters_cannot_express_are_refused_by_name() {
    for (condition, word) in [
        (
            "header = \"tunnel\"\nproto = \"tcp\"",
            "header = \"tunnel\"",
        ),
        ("vlan = 7", "vlan"),
        ("mark = 7", "--lan IF"),
        (
            "port = \"1-65534\"\nsrc = [\"10.0.0.0/8\", \"192.0.2.0/24\"]",
            "2000 filters",
        ),
    ] {
        let text = format!("[link]\ndown = \"9mbit\"\n[[first]]\nname = \"x\"\n{condition}\n");
        let text = match word {
            "2000 filters" => text.replace("port =", "src_port = \"1-65534\"\ndst_port ="),
            _ => text,
        };
        let place = Place {
            is_up: false,
            header: 14,
            is_redirected: true,
        };
        let refused = compile(&policy(&text), place, &NONE)
            .expect_err(condition)
            .to_string();
        assert!(
            refused.contains(word) && refused.contains("\"first\""),
            "{refused}"
        );
    }
    let without = Abilities { htb: false, ..NONE };
    let place = Place {
        is_up: true,
        header: 14,
        is_redirected: false,
    };
    let refused = compile(&policy(HOME), place, &without).expect_err("no htb");
    assert!(refused.to_string().contains("sch_htb"), "{refused}");
}

#[test]
fn cake_takes_rate_overhead_and_hosts_from_the_policy() {
    let text = "[link]\nup = \"9mbit\"\ndown = \"40mbit\"\noverhead = \"docsis\"\n[kernel]\nqueue = \"cake\"\nnat = true\n\
                ack_filter = true\nwash = true\n";
    let lines = [true, false].map(|is_up| {
        let tree = compiled(text, is_up, &Abilities::ALL).tree;
        let changes = changes(&Tree::default(), &tree);
        assert_eq!(changes.len(), 1);
        line(&changes[0], "eth0", |_| String::new())
    });
    assert_eq!(
        lines,
        [
            "tc qdisc add dev eth0 root handle 1: cake bandwidth 9000000bit besteffort dual-srchost nat nowash \
             ack-filter rtt 100000us overhead 18 mpu 64 noatm memlimit 450000 egress",
            "tc qdisc add dev eth0 root handle 1: cake bandwidth 40000000bit besteffort dual-dsthost nat wash \
             no-ack-filter rtt 100000us overhead 18 mpu 64 noatm memlimit 2000000 ingress",
        ]
    );
    let object = Object::Qdisc(compiled(text, false, &Abilities::ALL).tree.qdiscs[0].clone());
    let message = object.message(Verb::Add, 3, None);
    let found = decode(message.kind, &message.body).expect("an object");
    match (&found.object, &object) {
        (Object::Qdisc(found), Object::Qdisc(made)) => assert!(found.is_like(made), "{found:?}"),
        _ => panic!("{found:?}"),
    }
    let place = Place {
        is_up: true,
        header: 14,
        is_redirected: false,
    };
    let refused = compile(&policy(text), place, &NONE).expect_err("no cake");
    assert!(refused.to_string().contains("sch_cake"), "{refused}");
}

/// What a kernel would have after changes. Panics where the kernel would refuse one.
fn after(tree: &Tree, changes: &[Change]) -> Tree {
    let mut tree = tree.clone();
    for Change { verb, object } in changes {
        let (handle, parent) = match object {
            Object::Qdisc(one) => (one.handle, one.parent),
            Object::Class(one) => (one.handle, one.parent),
            Object::Filter(one) => (Handle(u32::from(one.priority)), one.parent),
        };
        let exists = |tree: &Tree, handle: Handle| {
            tree.qdiscs.iter().any(|one| one.handle == handle)
                || tree.classes.iter().any(|one| one.handle == handle)
                || handle.major() == 0xffff
        };
        match (verb, object) {
            (Verb::Add, Object::Filter(filter)) => {
                assert!(exists(&tree, parent), "{object:?}");
                tree.filters.push(filter.clone());
            }
            (Verb::Add, _) => {
                assert!(exists(&tree, parent), "{object:?}");
                assert!(
                    !exists(&tree, handle) || handle.major() == 0xffff,
                    "{object:?}"
                );
                tree.push(object.clone());
            }
            (Verb::Change, Object::Class(class)) => {
                let mut own = tree.classes.iter_mut();
                *own.find(|one| one.handle == handle).expect("the class") = class.clone();
            }
            (Verb::Change, Object::Qdisc(qdisc)) => {
                let mut own = tree.qdiscs.iter_mut();
                *own.find(|one| one.handle == handle).expect("the qdisc") = qdisc.clone();
            }
            (Verb::Change, Object::Filter(filter)) => {
                assert!(matches!(filter.kind, tc::FilterKind::Bpf(_)), "{object:?}");
                let mut own = tree.filters.iter_mut();
                let place = (parent, filter.priority);
                let now = own.find(|one| (one.parent, one.priority) == place);
                *now.expect("the filter") = filter.clone();
            }
            (Verb::Delete, Object::Filter(filter)) => {
                let count = tree.filters.len();
                tree.filters
                    .retain(|one| (one.parent, one.priority) != (parent, filter.priority));
                assert_eq!(tree.filters.len() + 1, count);
            }
            (Verb::Delete, _) => {
                assert!(exists(&tree, handle), "{object:?}");
                if matches!(object, Object::Class(_)) {
                    let has_filter = tree.filters.iter().any(|filter| {
                        matches!(&filter.kind, tc::FilterKind::U32 { action: tc::Action::Class(class), .. } if *class == handle)
                    });
                    assert!(!has_filter, "in use: {object:?}");
                    assert!(
                        tree.classes.iter().all(|one| one.parent != handle),
                        "{object:?}"
                    );
                }
                without(&mut tree, handle);
            }
        }
    }
    tree
}

/// Removes an object and all below it.
fn without(tree: &mut Tree, handle: Handle) {
    let mut gone = vec![handle];
    while let Some(handle) = gone.pop() {
        let own: Vec<Handle> = (tree.qdiscs.iter().map(|one| (one.handle, one.parent)))
            .chain(tree.classes.iter().map(|one| (one.handle, one.parent)))
            .filter(|(_, parent)| *parent == handle)
            .map(|(handle, _)| handle)
            .collect();
        gone.extend(own);
        tree.qdiscs.retain(|one| one.handle != handle);
        tree.classes.retain(|one| one.handle != handle);
        tree.filters.retain(|one| one.parent != handle);
    }
}

/// A policy with any of these parts.
fn any_policy() -> impl Strategy<Value = String> {
    (1..4_u32, any::<[bool; 5]>(), 0..3_usize).prop_map(|(rate, [ssh, work, below, swap, ports], queue)| {
        let queue = ["home", "flows", "pfifo"][queue];
        let mut text = format!("[link]\nup = \"{rate}mbit\"\n[shape]\ntemplate = \"{queue}\"\n");
        if ssh {
            text.push_str("[[first]]\nname = \"ssh\"\nproto = \"tcp\"\nport = 22\n");
        }
        if work {
            let condition = if below { "" } else { "dscp = \"af11\"\n" };
            text.push_str(&format!("[[class]]\nname = \"work\"\nrate = \"30%\"\n{condition}"));
        }
        if below {
            let parent = if work && !swap { "parent = \"work\"\n" } else { "" };
            let port = if ports { 80 } else { 443 };
            text.push_str(&format!(
                "[[class]]\nname = \"web\"\nrate = \"10%\"\nproto = \"tcp\"\ndst_port = {port}\n{parent}"
            ));
        }
        text
    })
}

proptest! {
    #[test]
    fn changes_make_the_wanted_tree_and_are_none_the_second_time(
        (old, new) in (any_policy(), any_policy()),
        (before, after_that) in (any::<bool>(), any::<bool>()),
    ) {
        let abilities = |all| if all { Abilities::ALL } else { NONE };
        let [Ok(_), Ok(_)] = [&old, &new].map(|text| Policy::parse(text)) else {
            return Ok(());
        };
        let old = compiled(&old, true, &abilities(before)).tree;
        let new = compiled(&new, true, &abilities(after_that)).tree;
        for (now, want) in [(Tree::default(), old.clone()), (old.clone(), new), (old, Tree::default())] {
            let made = after(&now, &changes(&now, &want));
            prop_assert_eq!(changes(&made, &want), vec![]);
            prop_assert_eq!(made.len(), want.len());
        }
    }

    #[test]
    fn no_bytes_make_the_decoder_panic(kind in 30_u16..50, body in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode(kind, &body);
    }

    #[test]
    fn broken_messages_are_no_other_objects(at in any::<prop::sample::Index>(), cut in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let tree = compiled(HOME, true, &Abilities::ALL).tree;
        let objects = objects(&tree);
        let message = objects[at.index(objects.len())].message(Verb::Add, 12, None);
        let mut body = message.body.clone();
        let place = cut.index(body.len());
        let _ = decode(message.kind, &body[..place]);
        body[place] = byte;
        let _ = decode(message.kind, &body);
    }
}

/// Classes with a host each, below 50 others. Each has 10 kbit/s; those above have `rate_kbit` for each.
fn large(classes: usize, rate_kbit: usize, more: &str) -> String {
    const ABOVE: usize = 50;
    let mut text = "[link]\nup = \"5gbit\"\n".to_owned();
    for above in 0..ABOVE {
        text.push_str(&format!(
            "[[class]]\nname = \"above {above}\"\nrate = \"{}kbit\"\nceil = \"1gbit\"\n",
            rate_kbit * classes.div_ceil(ABOVE)
        ));
    }
    for class in 0..classes {
        let [_, _, high, low] = (class as u32).to_be_bytes();
        text.push_str(&format!(
            "[[class]]\nname = \"{class}\"\nparent = \"above {}\"\nrate = \"10kbit\"\nqueue = \"pfifo\"\n\
             host = \"10.0.{high}.{low}\"\n",
            class % ABOVE
        ));
    }
    text + more
}

/// The most classes of one discipline.
fn most(tree: &Tree) -> usize {
    let mut counts = std::collections::BTreeMap::new();
    for class in &tree.classes {
        *counts.entry(class.handle.major()).or_insert(0) += 1;
    }
    counts.values().copied().max().unwrap_or(0)
}

#[test]
fn a_large_tree_has_a_discipline_for_the_classes_of_each_class() {
    let whole = compiled(&large(400, 10, ""), true, &Abilities::ALL);
    assert_eq!(most(&whole.tree), 452, "a small tree is one discipline");
    let divided = compiled(&large(10_000, 10, ""), true, &Abilities::ALL);
    assert_eq!(
        divided.tree.classes.len(),
        10_118,
        "16 of them are for the buckets of hosts of the rest"
    );
    assert_eq!(most(&divided.tree), 201);
    let by_handle: std::collections::BTreeMap<Handle, &tc::Class> = divided
        .tree
        .classes
        .iter()
        .map(|class| (class.handle, class))
        .collect();
    for (handle, name) in &divided.class_names {
        let class = by_handle[handle];
        if let Ok(number) = name.parse::<u16>() {
            // The class for all of the inner discipline is above it, which is the queue of the policy's class.
            let inner = Handle::new(0x30 + number % 50, 0);
            assert_eq!(class.parent, Handle::new(inner.major(), 1), "{name}");
            let discipline = divided.tree.qdiscs.iter().find(|one| one.handle == inner);
            assert_eq!(
                discipline.map(|one| one.parent),
                Some(Handle::new(1, inner.major()))
            );
            assert_eq!(handle.major(), inner.major());
        } else {
            assert_eq!(handle.major(), 1, "{name}");
        }
    }
    let filters = divided.tree.filters.iter();
    let at_root = filters.filter(|filter| filter.parent == Handle::new(1, 0));
    assert_eq!(at_root.count(), 1, "one program chooses the classes of all");
    assert_eq!(changes(&divided.tree, &divided.tree), []);
}

#[test]
fn classes_whose_rates_or_order_an_inner_discipline_would_change_stay_undivided() {
    // Their rates come to more than the class above them has.
    let more = compiled(&large(1_000, 9, ""), true, &Abilities::ALL);
    assert_eq!(most(&more.tree), 1_052);
    // One class below the first is served before the others.
    let urgent = "[[class]]\nparent = \"above 0\"\nrate = \"1bit\"\npriority = 1\nport = 5060\n";
    let urgent = compiled(&large(1_000, 11, urgent), true, &Abilities::ALL);
    assert_eq!(most(&urgent.tree), 52 + 21);
    // Without programs no filter names an inner class.
    let without = Abilities {
        bpf: false,
        ..Abilities::ALL
    };
    let without = compiled(&large(1_000, 10, ""), true, &without);
    assert_eq!(most(&without.tree), 1_052);
}

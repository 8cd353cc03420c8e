use std::path::Path;

use hqos::spec::{Fairness, NodeId};

use crate::config::{Settings, parse};

const HEAD: &str = "[control]\nsocket = \"/run/x.sock\"\n[lns]\nlisten = [\"127.0.0.1:1701\"]\n\
                    [ppp]\naddress = \"10.255.0.1\"\nauthenticate = \"nobody\"\n\
                    [[pool]]\nname = \"home\"\nranges = [\"10.64.0.0/24\"]\n";

fn read(rest: &str) -> Result<Settings, settings::Faults> {
    parse(
        Path::new("headend.toml"),
        format!("{HEAD}{rest}").as_bytes(),
    )
}

/// The faults of a file whose first line of its own is line 1.
fn faults(rest: &str) -> Vec<String> {
    let head = HEAD.lines().count();
    let lines = read(rest).expect_err("faults").lines();
    let own = |line: String| {
        let mut parts = line.splitn(4, ':').skip(1);
        let number: usize = parts.next().unwrap().parse().unwrap();
        let rest: Vec<&str> = parts.collect();
        format!("{}:{}", number.wrapping_sub(head), rest.join(":"))
    };
    lines.into_iter().map(own).collect()
}

#[test]
fn templates_links_lines_and_defaults_are_read() {
    let text = |rate: &str| {
        format!(
            "rate_up = \"3mbit\"\nqueue = \"gold\"\n\
             [queue]\nstrict = true\n[queue.default]\nrate_down = \"none\"\nlink = \"a\"\n\
             [[queue.template]]\nname = \"gold\"\nweight = 7\nfairness = \"flows\"\n\
             depth_packets = 9\ndepth = \"64k\"\ntarget = \"2ms\"\ninterval = \"40ms\"\nburst = \"1ms\"\n\
             ecn = false\noverhead = \"pppoe-ptm\"\nrate_down = \"{rate}\"\n\
             [[queue.link]]\nname = \"a\"\nparent = \"b\"\ndown = \"9mbit\"\nweight = 3\n\
             [[queue.link]]\nname = \"b\"\n\
             [[queue.line]]\nname = \"n\"\npeer = \"192.0.2.0/24\"\nlocal = \"192.0.2.1\"\n\
             host_name = \"lac\"\nrate_up = \"1mbit\"\n"
        )
    };
    let told = read(&text("1gbit")).expect_err("more than the link carries");
    assert!(
        told.to_string()
            .contains("pool[1].queue: link a has 9 Mbit/s down: 1 Gbit/s is more"),
        "{told}"
    );
    let settings = read(&text("8mbit"));
    let settings = settings.unwrap_or_else(|faults| panic!("{faults}"));
    let queues = &settings.subscribers.edge.queues;
    let gold = &queues.plan().templates[0];
    assert_eq!((&*gold.name, gold.weight), ("gold", 7));
    assert_eq!(gold.fairness, Fairness::Flows);
    assert_eq!((gold.depth.packets, gold.depth.octets), (9, 65_536));
    assert_eq!(gold.overhead.per_packet, 30);
    assert!(!gold.ecn && gold.target.as_nanos() == 2_000_000);
    assert_eq!(queues.rates_of("gold"), [Some(8_000_000), None]);
    let a = &queues.plan().nodes[0];
    assert_eq!(
        (a.parent, a.rates.down, a.rates.up),
        (Some(NodeId(1)), 9_000_000, 0)
    );
    assert_eq!(a.weight, 3);
    let defaults = queues.defaults();
    assert!(defaults.strict);
    assert_eq!(defaults.all.rates_bps, [Some(0), None]);
    assert_eq!(defaults.pools["home"].rates_bps, [None, Some(3_000_000)]);
    assert_eq!(defaults.lines[0].host_name.as_deref(), Some("lac"));
    assert_eq!(defaults.lines[0].queue.rates_bps, [None, Some(1_000_000)]);
}

#[test]
fn what_cannot_be_is_told_with_line_and_key() {
    for (rest, told) in [
        (
            "[[queue.link]]\nname = \"a\"\nparent = \"acess-7\"\n[[queue.link]]\nname = \"access-7\"\n",
            "3:10: queue.link[1].parent: there is no link \"acess-7\"; did you mean \"access-7\"?",
        ),
        (
            "[[queue.link]]\nname = \"a\"\nparent = \"b\"\n[[queue.link]]\nname = \"b\"\nparent = \"a\"\n",
            "3:10: queue.link[1].parent: is below itself: a -> b -> a; leave one of these parents out",
        ),
        (
            "[[queue.link]]\nname = \"a\"\nparent = \"a\"\n",
            "3:10: queue.link[1].parent: is below itself: a -> a; leave one of these parents out",
        ),
        (
            "[[queue.link]]\nname = \"a\"\n[[queue.link]]\nname = \"a\"\n",
            "4:8: queue.link[2].name: there is a link \"a\" already, in queue.link[1]; give each a name of its own",
        ),
        (
            "[[queue.template]]\nname = \"a\"\n[[queue.template]]\nname = \"a\"\n",
            "4:8: queue.template[2].name: there is a template \"a\" already; give each a name of its own",
        ),
        (
            "[[queue.template]]\nweight = 0\n",
            "2:10: queue.template[1].weight: 0 is out of range; it must be 1 to 1000",
        ),
        (
            "[queue.default]\nlink = \"a\"\nrate_down = \"20mbit\"\n[[queue.link]]\nname = \"a\"\ndown = \"10mbit\"\n",
            "3:13: queue.default.rate_down: link a has 10 Mbit/s down: 20 Mbit/s is more than the whole link; give 10 Mbit/s or less, or another link",
        ),
        (
            "rate_up = \"2mbit\"\n[queue.default]\nlink = \"a\"\n[[queue.link]]\nname = \"a\"\nparent = \"b\"\n[[queue.link]]\nname = \"b\"\nup = \"1mbit\"\n",
            "1:11: pool[1].rate_up: link b has 1 Mbit/s up: 2 Mbit/s is more than the whole link; give 1 Mbit/s or less, or another link",
        ),
        (
            "link = \"a\"\n",
            "1:8: pool[1].link: there is no link \"a\"; give [[queue.link]] with that name",
        ),
        (
            "[queue.default]\ntemplate = \"defualt\"\n",
            "2:12: queue.default.template: there is no template \"defualt\"; did you mean \"default\"?",
        ),
        (
            "[[queue.line]]\nname = \"n\"\nrate_up = \"1mbit\"\n",
            "1:1: queue.line[1].peer: says for whom it is by none of local, peer, host_name; give one of them, or write the keys to [queue.default]",
        ),
        (
            "rate_up = \"20\"\n",
            "1:11: pool[1].rate_up: 20 bit/s is too little; the lowest rate is 8 kbit/s; is the unit missing, as in \"20mbit\"?",
        ),
        (
            "[queue]\nstrct = true\n",
            "2:1: queue.strct: unknown key; did you mean strict?",
        ),
    ] {
        let all = faults(rest);
        assert!(all.contains(&told.to_owned()), "{rest}: {all:#?}");
    }
}

#[test]
fn a_long_chain_is_refused_and_a_narrow_parent_advised_against() {
    let chain = |count: usize| -> String {
        let one = |n: usize| format!("[[queue.link]]\nname = \"l{n}\"\nparent = \"l{}\"\n", n + 1);
        let links: String = (1..count).map(one).collect();
        format!("{links}[[queue.link]]\nname = \"l{count}\"\n")
    };
    assert!(read(&chain(8)).is_ok());
    let told = faults(&chain(9));
    assert_eq!(
        told,
        ["3:10: queue.link[1].parent: has more than 7 links above it; leave some of them out"]
    );
    let narrow = "[[queue.link]]\nname = \"a\"\nparent = \"b\"\ndown = \"2mbit\"\n\
                  [[queue.link]]\nname = \"b\"\ndown = \"1mbit\"\n";
    let advice = read(narrow)
        .unwrap_or_else(|faults| panic!("{faults}"))
        .advice;
    assert!(
        advice
            .to_string()
            .contains("link \"b\" has 1 Mbit/s down, less than this link (2 Mbit/s)"),
        "{advice}"
    );
}

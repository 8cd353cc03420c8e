use super::*;
use crate::parse_packet;

fn set(text: &str) -> FilterSet {
    FilterSet::parse(text, &Names::well_known()).expect(text).0
}

fn packet(text: &str) -> Header {
    parse_packet(text, &Names::well_known()).expect(text).1
}

const TEXT: &str = "filter a
in
  deny tcp to any port 25 log
  accept ip from 10.0.0.0/8
out
  accept tcp established
  default accept log

filter b
out
  deny icmp
";

#[test]
fn lines_have_places_in_the_order_of_the_file() {
    let set = set(TEXT);
    let a = set.get(set.find("a").expect("a")).expect("a");
    let lines: Vec<(u32, &str, usize, &str)> = a
        .lines()
        .map(|line| (line.rule, line.direction.word(), line.line, line.text))
        .collect();
    assert_eq!(
        lines,
        [
            (0, "in", 3, "deny tcp to any port 25 log"),
            (1, "in", 4, "accept ip from 10.0.0.0/8"),
            (2, "in", 0, "default deny"),
            (3, "in", 0, "damaged"),
            (4, "out", 6, "accept tcp established"),
            (5, "out", 7, "default accept log"),
            (6, "out", 0, "damaged"),
        ]
    );
    let b = set.get(set.find("b").expect("b")).expect("b");
    let texts: Vec<&str> = b.lines().map(|line| line.text).collect();
    assert_eq!(
        texts,
        ["not filtered", "deny icmp", "default deny", "damaged"]
    );
    assert!(!b.is_filtered(Direction::In) && b.is_filtered(Direction::Out));
    assert_eq!(set.find("c"), None);
    assert_eq!(set.iter().count(), 2);
}

#[test]
fn the_line_that_decides_is_told_and_counted() {
    let set = set(TEXT);
    let [a, b] = ["a", "b"].map(|name| set.get(set.find(name).expect(name)).expect(name));
    let mail = packet("tcp 10.0.0.1:1024 > 192.0.2.1:25");
    let web = packet("tcp 10.0.0.1:1024 > 192.0.2.1:80");
    let hits = Hits::new(&set);
    for (filter, packet, direction, expected) in [
        (a, &mail, Direction::In, (false, true, 0)),
        (a, &web, Direction::In, (true, false, 1)),
        (a, &web, Direction::Out, (true, true, 5)),
        (b, &web, Direction::In, (true, false, 0)),
        (b, &web, Direction::Out, (false, false, 2)),
    ] {
        let verdict = filter.matches(packet, direction);
        let (accept, log, rule) = expected;
        assert_eq!(verdict, Verdict { accept, log, rule });
        hits.count(filter, verdict);
    }
    let of = |filter: &Filter| {
        let lines = filter.lines();
        lines
            .map(|line| hits.of(filter, line.rule))
            .collect::<Vec<u64>>()
    };
    assert_eq!(of(a), [1, 1, 0, 0, 0, 1, 0]);
    assert_eq!(of(b), [1, 0, 1, 0]);
    let mut sum = Hits::new(&set);
    sum.add(&hits);
    sum.add(&hits);
    assert_eq!(sum.of(a, 0), 2);
}

#[test]
fn a_header_that_is_cut_or_would_be_overwritten_is_denied_before_any_rule() {
    let set = set("filter a\nin\naccept ip\n");
    let a = set.get(set.find("a").expect("a")).expect("a");
    for (text, rule) in [
        ("tcp 10.1.2.3 > 192.0.2.1 cut fragment 0", 2),
        ("udp 10.1.2.3 > 192.0.2.1 cut", 2),
        ("tcp 10.1.2.3 > 192.0.2.1 fragment 8", 2),
        ("udp 10.1.2.3 > 192.0.2.1 fragment 8", 0),
        ("tcp 10.1.2.3 > 192.0.2.1 fragment 16", 0),
    ] {
        let verdict = a.matches(&packet(text), Direction::In);
        assert_eq!((verdict.rule, verdict.accept), (rule, rule == 0), "{text}");
        assert!(a.matches(&packet(text), Direction::Out).accept, "{text}");
    }
}

#[test]
fn a_reload_keeps_ids_and_the_hits_of_lines_that_stayed() {
    let old = set(TEXT);
    let [a, b] = ["a", "b"].map(|name| old.find(name).expect(name));
    let web = packet("tcp 10.0.0.1:1024 > 192.0.2.1:80");
    let mut hits = Hits::new(&old);
    let count = |set: &FilterSet, hits: &mut Hits, id, direction| {
        let filter = set.get(id).expect("it is there");
        hits.count(filter, filter.matches(&web, direction));
    };
    count(&old, &mut hits, a, Direction::In);
    count(&old, &mut hits, a, Direction::Out);
    count(&old, &mut hits, b, Direction::Out);
    let text = "filter c\nin\nfilter a\nin\n  accept udp\n  accept   ip from 10.0.0.0/8 # all\nout\n  accept tcp established\n  default deny\n";
    let (new, _) = old.reload(text, &Names::well_known()).expect("usable");
    let hits = hits.carried(&old, &new);
    assert_eq!(new.find("a"), Some(a));
    assert_eq!(new.find("b"), None);
    let of = |id: FilterId, rule| hits.of(new.get(id).expect("it is there"), rule);
    assert_eq!([of(a, 0), of(a, 1), of(a, 2)], [0, 1, 0]);
    assert_eq!(of(a, 5), 0, "another default is another line");
    let gone = new.get(b).expect("who has it keeps it");
    assert!(!gone.is_in_file());
    assert!(!gone.matches(&web, Direction::Out).accept);
    assert_eq!(of(b, 2), 1);
    let (back, _) = new.reload(TEXT, &Names::well_known()).expect("usable");
    assert_eq!(back.find("b"), Some(b));
    assert!(new.reload("filter\n", &Names::well_known()).is_err());
}

#[test]
fn an_explanation_says_which_line_and_why_none_before() {
    let set = set(TEXT);
    let a = set.get(set.find("a").expect("a")).expect("a");
    let names = Names::well_known();
    let explain = |text, direction| a.explain(&packet(text), direction, &names).to_string();
    assert_eq!(
        explain("tcp 10.0.0.1:1024 > 192.0.2.1:80", Direction::In),
        "a in: tcp 10.0.0.1:1024 > 192.0.2.1:80(http) flags S length 0
       3  deny tcp to any port 25 log
          no: the destination port is 80
       4  accept ip from 10.0.0.0/8
          yes
accepted by line 4"
    );
    let denied = explain("udp 172.16.0.1:1 > 192.0.2.1:53", Direction::In);
    assert!(denied.contains("no: the protocol is udp"), "{denied}");
    assert!(
        denied.contains("the source 172.16.0.1 is not in 10.0.0.0 to 10.255.255.255"),
        "{denied}"
    );
    assert!(
        denied.ends_with("denied by 'default deny', not written in the file"),
        "{denied}"
    );
    let later = explain("tcp 10.0.0.1 > 10.0.0.2 fragment 1480", Direction::Out);
    assert!(later.contains("a later fragment has no ports"), "{later}");
    let damaged = explain("tcp 10.0.0.1 > 10.0.0.2 fragment 8", Direction::In);
    assert!(damaged.contains("RFC 3128"), "{damaged}");
}

use super::*;
use crate::{FilterSet, parse_packet};

/// The faults of a text, as printed.
fn faults(text: &str) -> Vec<String> {
    match FilterSet::parse(text, &Names::well_known()) {
        Ok(_) => Vec::new(),
        Err(remarks) => remarks.faults.iter().map(ToString::to_string).collect(),
    }
}

/// The fault of a rule, which is in the third line.
fn fault(rule: &str) -> String {
    let faults = faults(&format!("filter x\nin\n{rule}\n"));
    assert_eq!(faults.len(), 1, "{rule}: {faults:?}");
    faults[0].clone()
}

/// Whether a rule alone matches a packet given as text.
fn matches(rule: &str, packet: &str) -> bool {
    let names = Names::well_known();
    let text = format!("filter x\nin\n{rule}\n");
    let (set, _) = FilterSet::parse(&text, &names).expect(rule);
    let filter = set.get(set.find("x").expect("x")).expect("x");
    let packet = parse_packet(packet, &names).expect(packet).1;
    let verdict = filter.matches(&packet, Direction::In);
    assert_eq!(
        verdict.rule == 0,
        filter.rules(Direction::In)[0].matches(&packet)
    );
    verdict.rule == 0
}

const WEB: &str = "tcp 10.1.2.3:1234 > 192.0.2.1:80 flags S";
const ANSWER: &str = "tcp 192.0.2.1:80 > 10.1.2.3:1234 flags SA";
const QUERY: &str = "udp [2001:db8::1]:4711 > [2001:db8::53]:53";

// long: a table of cases
#[test]
fn a_rule_of_every_form_matches_what_it_says() {
    for (rule, packet, expected) in [
        ("accept ip", WEB, true),
        ("accept all", QUERY, true),
        ("accept ip4", QUERY, false),
        ("accept ip6", QUERY, true),
        ("accept tcp", WEB, true),
        ("accept 6", WEB, true),
        ("accept TCP", WEB, true),
        ("accept 17,tcp", WEB, true),
        ("accept udp", WEB, false),
        ("accept tcp from 10.0.0.0/8 to any", WEB, true),
        ("accept tcp from 11.0.0.0/8 to any", WEB, false),
        ("accept tcp to 192.0.2.1 port http", WEB, true),
        ("accept tcp to any port 443, 80", WEB, true),
        ("accept tcp to any port 79-81", WEB, true),
        ("accept tcp to any port 81-90", WEB, false),
        ("accept tcp from any port 1024-65535", WEB, true),
        ("accept tcp from any port 80", WEB, false),
        ("accept tcp from 10.1.2.0-10.1.2.3", WEB, true),
        ("accept tcp from 10.1.2.4-10.1.2.9", WEB, false),
        (
            "accept udp from 10.0.0.0/8,2001:db8::/64 to any",
            QUERY,
            true,
        ),
        (
            "accept udp from 2001:db8::1 to ::/0 port domain",
            QUERY,
            true,
        ),
        ("accept udp from 0.0.0.0/0", QUERY, false),
        ("accept tcp established", WEB, false),
        ("accept tcp established", ANSWER, true),
        (
            "accept tcp established",
            "tcp 1.2.3.4:5 > 1.2.3.6:7 flags R",
            true,
        ),
        ("accept tcp flags S/SA", WEB, true),
        ("accept tcp flags S/SA", ANSWER, false),
        ("accept tcp flags S", ANSWER, true),
        ("accept tcp flags /FSRPAU", WEB, false),
        ("accept tcp flags /FPU", WEB, true),
        (
            "accept icmp icmp-type echo-request",
            "icmp 1.2.3.4 > 1.2.3.5 icmp-type 8/0",
            true,
        ),
        (
            "accept icmp icmp-type 0,3/4",
            "icmp 1.2.3.4 > 1.2.3.5 icmp-type 3/4",
            true,
        ),
        (
            "accept icmp icmp-type 0,3/4",
            "icmp 1.2.3.4 > 1.2.3.5 icmp-type 3/3",
            false,
        ),
        (
            "accept icmp6 icmp-type packet-too-big",
            "icmp6 ::1 > ::2 icmp-type 2/0",
            true,
        ),
        ("accept gre", "gre 1.2.3.4 > 1.2.3.5", true),
        ("accept ip fragment", WEB, false),
        (
            "accept ip fragment",
            "udp 1.2.3.4 > 1.2.3.5 fragment 1480",
            true,
        ),
    ] {
        assert_eq!(matches(rule, packet), expected, "{rule}: {packet}");
    }
}

#[test]
fn later_fragments_pass_by_address_and_protocol_and_are_denied_by_these_alone() {
    let later = "udp 10.1.2.3 > 192.0.2.1 fragment 1480";
    for (rule, expected) in [
        ("accept udp to any port 53", true),
        ("accept udp to 192.0.2.2 port 53", false),
        ("accept tcp to any port 53", false),
        ("deny udp to any port 53", false),
        ("deny udp to any", true),
        ("deny ip fragment", true),
    ] {
        assert_eq!(matches(rule, later), expected, "{rule}");
    }
    let first = "udp 10.1.2.3:9 > 192.0.2.1:53 fragment 0";
    assert!(matches("deny udp to any port 53", first));
    assert!(!matches("deny ip fragment", first));
}

// long: a table of cases
#[test]
fn a_fault_names_line_column_word_and_what_would_be_right() {
    for (rule, expected) in [
        (
            "acept ip",
            "3:1: acept: begins no line; did you mean accept?",
        ),
        (
            "permit ip",
            "3:1: permit: begins no line; did you mean accept?",
        ),
        ("drop ip", "3:1: drop: begins no line; did you mean deny?"),
        (
            "accept",
            "3:1: accept: of what?; a protocol's name or number, or ip for any",
        ),
        ("accept tpc", "3:8: tpc: is no protocol; did you mean tcp?"),
        (
            "accept 256",
            "3:8: 256: is no protocol; a name, a number up to 255, or ip for any",
        ),
        (
            "accept tcp form any",
            "3:12: form: is no word of a rule; did you mean from?",
        ),
        (
            "accept tcp from",
            "3:12: from: nothing follows; any, an address, or ADDRESS/LENGTH",
        ),
        (
            "accept ip from 10.1.2.3/8",
            "3:16: 10.1.2.3/8: has bits behind its first 8; did you mean 10.0.0.0/8, or 10.1.2.3 alone?",
        ),
        (
            "accept ip from 2001:db8::1/64",
            "3:16: 2001:db8::1/64: has bits behind its first 64; did you mean 2001:db8::/64, or 2001:db8::1 alone?",
        ),
        (
            "accept ip from 10.0.0.0/33",
            "3:16: 10.0.0.0/33: is no prefix; a length from 0 to 32",
        ),
        (
            "accept ip from 10.0.0.9-10.0.0.1",
            "3:16: 10.0.0.9-10.0.0.1: is no range; both of one version, the lower one first",
        ),
        (
            "accept ip from anny",
            "3:16: anny: is no address; did you mean any?",
        ),
        (
            "accept tcp to any port htpp",
            "3:24: htpp: is no port; did you mean http?",
        ),
        (
            "accept tcp to any port 9-1",
            "3:24: 9-1: is no range; the lower one first",
        ),
        (
            "accept tcp to any port 1,,2",
            "3:24: 1,,2: a list with nothing between commas; values with a comma between each two",
        ),
        (
            "accept ip to any port 80",
            "3:18: port: is of a protocol without ports; tcp, udp, sctp, dccp or udplite as protocol",
        ),
        (
            "accept tcp port 80",
            "3:12: port: follows no addresses; from ADDRESSES port PORTS, or to ADDRESSES port PORTS",
        ),
        (
            "accept udp established",
            "3:12: established: is of TCP alone; tcp as protocol",
        ),
        (
            "accept tcp flags SX",
            "3:18: SX: are no TCP flags; letters of FSRPAUEW, as in S/SA",
        ),
        (
            "accept tcp flags SA/S",
            "3:18: SA/S: never matches; what is set before the slash, what is looked at after it",
        ),
        (
            "accept tcp flags /",
            "3:18: /: looks at no flag; letters of FSRPAUEW, as in S/SA",
        ),
        (
            "accept udp icmp-type 8",
            "3:12: icmp-type: is of another protocol; a rule for icmp or for icmp6, which have types of their own",
        ),
        (
            "accept icmp icmp-type echo-requst",
            "3:23: echo-requst: is no ICMP type; did you mean echo-request?",
        ),
        (
            "accept icmp icmp-type 3/x",
            "3:23: 3/x: has no code; TYPE/CODE with a code up to 255",
        ),
        (
            "accept tcp established fragment",
            "3:24: fragment: means later fragments, which have no ports, flags or ICMP type; addresses and protocol only",
        ),
        (
            "accept ip log log",
            "3:15: log: is there twice; once; lists have commas",
        ),
        (
            "accept ip from 10.0.0.0/8 to ::/0",
            "3:1: accept: never matches: one part of it is IPv4, another IPv6; addresses of one version",
        ),
        (
            "default",
            "3:1: default: says nothing; default deny, or default accept; 'log' may follow",
        ),
        (
            "default deny now",
            "3:14: now: is too much; default deny, or default accept; 'log' may follow",
        ),
    ] {
        assert_eq!(fault(rule), expected, "{rule}");
    }
}

#[test]
fn a_file_that_is_put_together_wrongly_says_where() {
    assert!(faults("in\n")[0].contains("rules without a filter"));
    assert!(faults("filter x\naccept ip\n")[0].contains("a rule of no direction"));
    assert!(faults("filter\n")[0].contains("filter NAME"));
    assert!(faults("filter a\nfilter a\n")[0].contains("of this name at line 1"));
    assert!(faults("filter a\nin\nin\n")[0].contains("has this at line 2"));
    assert!(faults("filter a\nin rules\n")[0].contains("stands alone"));
    let late = faults("filter a\nin\ndefault deny\naccept ip\n");
    assert!(late[0].contains("after the default at line 3"), "{late:?}");
    assert!(
        faults("filter a\nin\ndefault deny\ndefault deny\n")[0].contains("a default at line 3")
    );
    let many = faults("filter a\nin\nacept ip\ndeny tpc\naccept ip\ndeny udp form any\n");
    assert_eq!(many.len(), 3, "{many:?}");
}

#[test]
fn rules_past_the_limit_are_refused() {
    let rules = |count: usize| format!("filter a\nin\n{}", "accept gre\n".repeat(count));
    assert!(faults(&rules(RULES_MAX)).is_empty());
    assert!(faults(&rules(RULES_MAX + 1))[0].contains("too many rules"));
    let hostile = format!("filter a\nin\n{}", "acept\n".repeat(100_000));
    assert_eq!(faults(&hostile).len(), FAULTS_MAX);
    let list = vec!["1"; 2_000].join(",");
    assert!(fault(&format!("accept tcp to any port {list}")).contains("a list of 2000"));
}

#[test]
fn what_is_never_reached_is_advised_against() {
    let advice = |rules: &str| {
        let text = format!("filter x\nin\n{rules}\nout\ndefault accept\n");
        let (_, advice) = FilterSet::parse(&text, &Names::well_known()).expect(rules);
        advice
            .iter()
            .map(|remark| remark.line)
            .collect::<Vec<usize>>()
    };
    assert_eq!(advice("accept ip\ndeny tcp to any port 25"), [4]);
    assert_eq!(
        advice("deny tcp to any port 20-30\naccept tcp to any port 25"),
        [0_usize; 0]
    );
    assert_eq!(
        advice("accept tcp to any port 20-30\ndeny tcp to any port 25"),
        [4]
    );
    assert_eq!(advice("accept tcp established\naccept tcp flags A"), [4]);
    assert_eq!(
        advice("accept tcp established\naccept tcp flags S"),
        [0_usize; 0]
    );
    assert_eq!(advice("accept ip4\ndeny udp from 10.0.0.0/8"), [4]);
    assert_eq!(
        advice("accept ip from 10.0.0.0/8\ndeny udp from 10.0.0.0/7"),
        [0_usize; 0]
    );
    let (_, open) = FilterSet::parse("filter x\nin\n", &Names::well_known()).expect("usable");
    assert!(
        open[0].to_string().contains("out: all packets pass"),
        "{open:?}"
    );
}

#[test]
fn words_have_their_columns_and_lists_go_on_behind_commas() {
    let words = words("  deny tcp\tfrom 1.2.3.4, 5.6.7.8 ,::1 # to any");
    let shown: Vec<(usize, &str)> = words
        .iter()
        .map(|word| (word.column, word.text.as_str()))
        .collect();
    let list = "1.2.3.4,5.6.7.8,::1";
    assert_eq!(shown, [(3, "deny"), (8, "tcp"), (12, "from"), (17, list)]);
}

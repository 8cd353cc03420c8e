//! accel-ppp's files: an example, each option, what is lost, and bytes that are no configuration.

mod common;
#[path = "common/lines.rs"]
mod lines;

use proptest::prelude::*;
use tool_import::{Fate, Files, Import, Output, accel};

#[test]
fn an_example_becomes_the_expected_files_and_report() {
    let main = &["etc/accel-ppp.conf"];
    common::golden("accel", main, accel::USUAL, accel::read);
}

#[test]
fn the_page_lists_every_option() {
    common::documented("accel-ppp.conf", accel::RULES[0]);
    common::documented("accel-ppp.conf sections", accel::RULES[1]);
    common::documented("accel-ppp.conf modules", accel::RULES[2]);
}

fn import(text: &str) -> (Vec<Output>, Import) {
    let mut files = Files::of(&[("accel-ppp.conf", text.as_bytes())]);
    common::import(&mut files, accel::read)
}

fn config(text: &str) -> String {
    let (outputs, _) = import(text);
    outputs[0].text.reveal().clone()
}

/// The fate of the option in the last line.
fn fate(text: &str) -> (Fate, Vec<String>) {
    let (_, import) = import(text);
    let last = text.lines().count();
    let mut lines = import.report.lines().iter();
    let line = lines.find(|line| line.place.line == last);
    let line = line.unwrap_or_else(|| panic!("{text}\n{}", import.report));
    (line.fate, line.keys.clone())
}

#[test]
fn each_option_is_in_the_report_and_the_result_passes_the_check() {
    for value in [
        "1",
        "0",
        "yes",
        "",
        "192.0.2.1",
        "eth1,5",
        "2001:db8::/40,56",
        "x,y",
        "99999999999",
    ] {
        let mut text = String::new();
        for rule in accel::RULES[0] {
            let (section, option) = rule.name.split_once(' ').unwrap();
            text.push_str(&match rule.words {
                1 => format!("[{section}]\n{option}={value}\n"),
                _ => format!("[{section}]\n{value}\n"),
            });
        }
        let (_, import) = import(&text);
        for number in lines::lines_that_count(&text, &['#']) {
            let mut lines = import.report.lines().iter();
            let is_there = lines.any(|line| line.place.line == number);
            assert!(is_there, "{number} of {text}\n{}", import.report);
        }
    }
}

#[test]
fn each_module_is_in_the_report() {
    let names: Vec<&str> = accel::RULES[2].iter().map(|rule| rule.name).collect();
    let text = format!("[modules]\n{}\n", names.join("\n"));
    let (_, import) = import(&text);
    for number in 2..=text.lines().count() {
        let mut lines = import.report.lines().iter();
        assert!(
            lines.any(|line| line.place.line == number),
            "{number} {}",
            import.report
        );
    }
}

// long: a table of options and keys
#[test]
fn options_become_keys() {
    for (text, expected) in [
        ("[ppp]\nmru=1400\n", "mru = 1400"),
        ("[ppp]\nipv6=allow\n", "ipv6 = true"),
        ("[ppp]\nlcp-echo-interval=30\n", "echo_interval_s = 30"),
        ("[ppp]\npcomp=allow\n", "compress_headers = true"),
        ("[common]\nmax-sessions=500\n", "subscribers = 500"),
        ("[auth]\nnoauth=1\n", "authenticate = \"nobody\""),
        ("[pppoe]\ninterface=eth7\n", "name = \"eth7\""),
        ("[pppoe]\ninterface=eth7.12\n", "vlans = [\"12\"]"),
        (
            "[pppoe]\nvlan-mon=eth7,5,100-200\n",
            "vlans = [\"5\", \"100-200\"]",
        ),
        (
            "[pppoe]\ninterface=e\npado-delay=0,100:50,-1:90\n",
            "pado_delay = [\"0:0\", \"50:100\", \"90:never\"]",
        ),
        (
            "[pppoe]\ninterface=e\nservice-name=a,b\n",
            "services = [\"a\", \"b\"]",
        ),
        ("[pppoe]\ninterface=e\npadi-limit=7\n", "padi_per_s = 7"),
        (
            "[l2tp]\nbind=192.0.2.9\nport=1702\n",
            "listen = [\"192.0.2.9:1702\"]",
        ),
        ("[l2tp]\nhello-interval=30\n", "hello_interval_s = 30"),
        ("[l2tp]\nrecv-window=9\n", "receive_window = 9"),
        ("[l2tp]\nsecret=x\nhide-avps=1\n", "hide = true"),
        (
            "[radius]\nserver=192.0.2.7,x,auth-port=1645,acct-port=0\n",
            "authentication = \"192.0.2.7:1645\"",
        ),
        ("[radius]\nserver=192.0.2.7,x\ntimeout=7\n", "timeout_s = 7"),
        (
            "[radius]\nserver=192.0.2.7,x\ndae-server=127.0.0.1:3799,y\n",
            "disconnect = \"127.0.0.1:3799\"",
        ),
        (
            "[radius]\nacct-interim-interval=300\n",
            "interim_interval_s = 300",
        ),
        (
            "[ip-pool]\n10.0.0.2-99,name=a\n",
            "ranges = [\"10.0.0.2-10.0.0.99\"]",
        ),
        // accel-ppp leases from the address that is given, and reads one octet behind the dash.
        ("[ip-pool]\n10.0.0.8/29\n", "ranges = [\"10.0.0.8/29\"]"),
        (
            "[ip-pool]\n10.0.0.9/29\n",
            "ranges = [\"10.0.0.9-10.0.0.15\"]",
        ),
        (
            "[ip-pool]\n10.0.0.2-10.0.0.99\n",
            "ranges = [\"10.0.0.2-10.0.0.10\"]",
        ),
        (
            "[ip-pool]\ntunnel=10.0.0.2-99,name=a\n",
            "ranges = [\"10.0.0.2-10.0.0.99\"]",
        ),
        ("[ppp]\ntimeout=5\n", "restart_s = 5"),
        ("[ppp]\nmax-configure=5\n", "configure_tries = 5"),
        ("[ppp]\nmax-terminate=5\n", "terminate_tries = 5"),
        ("[auth]\ninterval=300\n", "rechallenge_interval_s = 300"),
        ("[auth]\ntimeout=9\n", "authentication_timeout_s = 9"),
        ("[auth]\nchallenge-name=x\n", "name = \"x\""),
        ("[common]\nsession-timeout=60\n", "session_timeout_s = 60"),
        (
            "[radius]\nserver=192.0.2.7,x\ndae-server=127.0.0.1:3799,y\ndae-allowed=192.0.2.9\n",
            "address = \"192.0.2.9\"",
        ),
        ("[ip-pool]\n10.0.0.0/24,b\n", "name = \"b\""),
        (
            "[ip-pool]\ngw-ip-address=10.9.9.9\n",
            "address = \"10.9.9.9\"",
        ),
        ("[ipv6-pool]\n2001:db8::/40,64\n", "link_pool = \"links\""),
        (
            "[ipv6-pool]\ndelegate=2001:db8::/40,56\n",
            "delegated_pool = \"homes\"",
        ),
        ("[ipv6-dns]\n2001:db8::53\n", "dns = [\"2001:db8::53\"]"),
        ("[dns]\ndns1=192.0.2.53\n", "dns = [\"192.0.2.53\"]"),
        (
            "[shaper]\nrate-limit=2048/512\n",
            "rate_down = \"2048kbit\"",
        ),
        ("[log]\nlevel=5\n", "level = \"trace\""),
        ("[modules]\nnet-snmp\n", "agentx = \"/var/agentx/master\""),
    ] {
        let config = config(text);
        assert!(
            config.lines().any(|line| line.starts_with(expected)),
            "{text}: {expected}\n{config}"
        );
    }
}

/// The keys of these names in the result, in order.
fn keys(text: &str, names: &[&str]) -> Vec<String> {
    let config = config(text);
    let lines = config.lines().filter(|line| {
        let name = line.split(" = ").next().unwrap_or_default();
        names.contains(&name)
    });
    let values = lines.map(|line| line.split("  #").next().unwrap_or_default().trim_end());
    values.map(str::to_owned).collect()
}

#[test]
fn echo_requests_end_a_link_when_accel_ppp_ends_it() {
    for (text, expected) in [
        // Without an interval accel-ppp sends none.
        ("", &["echo_interval_s = 0"][..]),
        ("lcp-echo-failure=3\n", &["echo_interval_s = 0"]),
        // More than the number have no reply.
        (
            "lcp-echo-interval=10\n",
            &["echo_interval_s = 10", "echo_tries = 1"],
        ),
        (
            "lcp-echo-interval=10\nlcp-echo-failure=3\n",
            &["echo_interval_s = 10", "echo_tries = 4"],
        ),
        // Silence of 120 s, looked at every 20 s.
        (
            "lcp-echo-interval=20\nlcp-echo-timeout=120\n",
            &["echo_interval_s = 20", "echo_tries = 6"],
        ),
        (
            "lcp-echo-interval=50\nlcp-echo-timeout=120\n",
            &["echo_interval_s = 50", "echo_tries = 3"],
        ),
    ] {
        let found = keys(
            &format!("[ppp]\n{text}"),
            &["echo_interval_s", "echo_tries"],
        );
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn the_mru_is_the_smallest_that_accel_ppp_knows() {
    let (pppoe, l2tp) = ("[pppoe]\ninterface=eth1\n", "[modules]\nl2tp\n");
    for (text, expected) in [
        (pppoe.to_owned(), "mru = 1492"),
        (l2tp.to_owned(), "mru = 1420"),
        (format!("{l2tp}[l2tp]\nppp-max-mtu=1460\n"), "mru = 1460"),
        (format!("{l2tp}[ppp]\nmru=1400\n"), "mru = 1400"),
        (format!("{l2tp}[ppp]\nmru=1480\n"), "mru = 1420"),
        (
            format!("{pppoe}[ppp]\nmru=1480\nmax-mtu=1300\n"),
            "mru = 1300",
        ),
    ] {
        assert_eq!(keys(&text, &["mru"]), [expected], "{text}");
    }
}

#[test]
fn defaults_that_differ_are_carried_over() {
    let names = &[
        "host_name",
        "receive_window",
        "retransmit_cap_s",
        "failure_tries",
        "ac_name",
        "cookie_lifetime_s",
        "any_service",
        "valid_s",
        "preferred_s",
    ];
    let text = "[l2tp]\nbind=192.0.2.1\n[pppoe]\ninterface=e\nservice-name=a\n[ipv6-nd]\nMaxRtrAdvInterval=300\n";
    let mut found = keys(text, names);
    found.sort();
    let expected = [
        "ac_name = \"accel-ppp\"",
        "any_service = false",
        "cookie_lifetime_s = 5",
        "failure_tries = 10",
        "host_name = \"accel-ppp\"",
        "preferred_s = 604800",
        "receive_window = 16",
        "retransmit_cap_s = 16",
        "valid_s = 2592000",
    ];
    assert_eq!(found, expected);
    // A host that asks for any name gets one only if an option says so, or if no name is set.
    for (text, expected) in [
        ("[pppoe]\ninterface=e\n", &[][..]),
        (
            "[pppoe]\ninterface=e\nservice-name=a\naccept-blank-service=1\n",
            &["any_service = true"],
        ),
    ] {
        assert_eq!(keys(text, &["any_service"]), expected, "{text}");
    }
    let servers = "[radius]\nserver=192.0.2.7,x\nserver=192.0.2.8,x,fail-timeout=9,max-fail=8\nfail-timeout=20\nmax-fail=7\n";
    assert_eq!(
        keys(servers, &["timeout_s", "dead_time_s", "dead_after"]),
        [
            "dead_time_s = 20",
            "dead_after = 7",
            "timeout_s = 3",
            "dead_time_s = 9",
            "dead_after = 8",
            "timeout_s = 3",
        ]
    );
}

#[test]
fn the_first_of_two_lines_counts_and_files_are_included() {
    let text = "[ppp]\nmru=1400\nmru=1300\n";
    assert_eq!(keys(text, &["mru"]), ["mru = 1400"]);
    assert_eq!(fate(text).0, Fate::NoEffect);
    // A value that refers to an earlier option of the section.
    let text = "[ppp]\nmru=1400\nmtu=${mru}\n";
    assert_eq!(keys(text, &["mtu"]), ["mtu = 1400"]);
    assert_eq!(fate("[ppp]\nmtu=${mru}\n").0, Fate::Unknown);
    // Older names.
    let text = "[pppoe]\ninterface=e\nAC-Name=old\n";
    assert_eq!(keys(text, &["ac_name"]), ["ac_name = \"old\""]);
    let text = "[pppoe]\ninterface=e\nac-name=new\nAC-Name=old\n";
    assert_eq!(keys(text, &["ac_name"]), ["ac_name = \"new\""]);
    assert_eq!(fate(text).0, Fate::NoEffect);
    let main = b"[ppp]\n$include sizes.conf\nmru=1300\n$include none.conf\n";
    let sizes = b"mru=1350\n[dns]\ndns1=192.0.2.53\n$include sizes.conf\n";
    let mut files = Files::of(&[("accel-ppp.conf", main), ("sizes.conf", sizes)]);
    let (outputs, import) = common::import(&mut files, accel::read);
    let config = outputs[0].text.reveal();
    assert!(config.contains("mru = 1350"), "{config}");
    assert!(config.contains("dns = [\"192.0.2.53\"]"), "{config}");
    let mut lines = import.report.lines().iter();
    let missing = lines
        .find(|line| line.place.line == 4)
        .map(|line| line.fate);
    assert_eq!(missing, Some(Fate::NotSupported), "{}", import.report);
}

#[test]
fn what_has_no_key_is_listed_with_its_fate() {
    for (text, expected) in [
        ("[modules]\nlog_file\n[l2tp]\nport=7\n", Fate::NoEffect),
        ("[ppp]\nmppe=require\n", Fate::NotSupported),
        ("[ppp]\nmppe=deny\n", Fate::Kept),
        ("[pppoe]\ninterface=re:eth[0-9]+\n", Fate::NotSupported),
        ("[pppoe]\nac-name=x\n", Fate::NoEffect),
        ("[sstp]\nport=443\n", Fate::NotSupported),
        ("[ppp]\nmruu=1400\n", Fate::Unknown),
        ("[pppp]\n", Fate::Unknown),
        ("[ppp]\nmru=large\n", Fate::Unknown),
        ("[ip-pool]\n10.0.0.9-2\n", Fate::Unknown),
        // accel-ppp takes no single address.
        ("[ip-pool]\n10.0.0.9\n", Fate::Unknown),
        ("[ip-pool]\ngw=10.0.0.9\n", Fate::NoEffect),
        ("[ipv6-nd]\nAdvOnLinkFlag=1\n", Fate::NotSupported),
        ("[radius]\nblast-protection=1\n", Fate::Kept),
        ("[metrics]\naddress=127.0.0.1:8080\n", Fate::NoEffect),
        ("[radius]\nserver=192.0.2.1\n", Fate::Unknown),
        // The daemon refuses the value.
        ("[ppp]\nmru=7\n", Fate::NotSupported),
    ] {
        assert_eq!(fate(text).0, expected, "{text}");
    }
    let (fate, keys) = fate("[radius]\nserver=192.0.2.7,x,auth-port=0\n");
    assert_eq!(fate, Fate::Key);
    assert_eq!(
        keys,
        ["radius.server.accounting", "radius.server.secret_file"]
    );
}

#[test]
fn no_secret_is_in_the_report_or_in_the_configuration() {
    let main = b"[modules]\nhunter0\nradius\nl2tp\nchap-secrets\n[l2tp]\nsecret=hunter1\nsecrett=hunter2\n[radius]\nserver=192.0.2.1,hunter3\nserver=hunter4\nauth-server=192.0.2.2:1812,hunter5\ndae-server=192.0.2.1:3799,hunter6\nhunter7\n[cli]\npassword=hunter8\n[hunter9]\n";
    let users = b"ann * hunter10 *\nhunter11\n";
    let mut files = Files::of(&[("accel-ppp.conf", main), ("chap-secrets", users)]);
    let (outputs, import) = common::import(&mut files, accel::read);
    for text in [
        import.report.to_string(),
        import.report.json("accel-ppp", &[]).to_string(),
        outputs[0].text.reveal().clone(),
    ] {
        assert!(!text.contains("hunter"), "{text}");
    }
    let users = outputs
        .iter()
        .find(|file| file.name == "users.toml")
        .unwrap();
    assert!(users.text.reveal().contains("hunter10"));
}

/// Words that these files are made of, so that random files are near real ones.
const WORDS: &[&str] = &[
    "\n[modules]\n",
    "\n[pppoe]\n",
    "\n[l2tp]\n",
    "\n[radius]\n",
    "\n[ip-pool]\n",
    "\n[ipv6-pool]\n",
    "\n[ipv6-dns]\n",
    "\n[ppp]\n",
    "\n[chap-secrets]\n",
    "\n[shaper]\n",
    "\n[auth]\n",
    "\n[dns]\n",
    "\n",
    "pppoe\n",
    "l2tp\n",
    "radius\n",
    "chap-secrets\n",
    "auth_pap\n",
    "interface=",
    "vlan-mon=",
    "pado-delay=",
    "server=",
    "dae-server=",
    "auth-server=",
    "secret=",
    "bind=",
    "port=",
    "mru=",
    "noauth=",
    "delegate=",
    "gw-ip-address=",
    "rate-limit=",
    "dns1=",
    "192.0.2.1",
    "10.0.0.0/24",
    "10.0.0.1-9",
    "2001:db8::/40",
    ",",
    ",64",
    ",name=a",
    "eth1",
    "100-200",
    "re:",
    "1",
    "0",
    "-1",
    ":",
    "/",
    "=",
    "#",
    "[",
    "]",
    "\u{0}",
    "x",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_line_of_any_file_is_in_the_report_and_the_result_passes_the_check(
        main in prop::collection::vec(prop::sample::select(WORDS), 0..80),
        raw in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let main = main.concat();
        let files = [("accel-ppp.conf", main.as_bytes()), ("chap-secrets", &raw)];
        let (_, import) = common::import(&mut Files::of(&files), accel::read);
        for number in lines::lines_that_count(&main, &['#']) {
            let is_there = import.report.lines().iter().any(|line| &*line.place.file == "accel-ppp.conf" && line.place.line == number);
            prop_assert!(is_there, "line {number} of {main:?}\n{}", import.report);
        }
    }
}

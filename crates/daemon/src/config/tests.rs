use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::*;

mod ipv6;
mod tunnels;

fn faults(source: &str) -> String {
    match parse(Path::new("headend.toml"), source.as_bytes()) {
        Ok(_) => panic!("taken: {source}"),
        Err(faults) => faults.to_string(),
    }
}

fn settings(source: &str) -> Settings {
    parse(Path::new("headend.toml"), source.as_bytes()).unwrap_or_else(|faults| panic!("{faults}"))
}

/// Puts `rest` after a control section and an LNS section, so that it starts in line 5.
fn with_lns(rest: &str) -> String {
    format!(
        "[control]\nsocket = \"/run/headend.sock\"\n[lns]\nlisten = [\"127.0.0.1:1701\"]\n{rest}"
    )
}

/// A directory for one test, removed when the test ends.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("headend-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, text: &str, mode: u32) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn the_smallest_configuration_is_taken() {
    let settings = settings(
        "[control]\nsocket = \"/run/headend.sock\"\n[lns]\nlisten = [\"127.0.0.1:1701\"]\n",
    );
    assert_eq!(settings.control.socket, Path::new("/run/headend.sock"));
    let lns = settings.lns.unwrap();
    let addr = "127.0.0.1:1701".parse().unwrap();
    assert_eq!(
        lns.listen,
        [Listen {
            addr,
            optional: false
        }]
    );
    assert_eq!(lns.sockets, Sockets::Shared);
    assert!(settings.lac.is_none() && settings.l2tp.accept);
}

#[test]
fn a_lac_needs_no_listen_address_and_accepts_nothing() {
    let settings = settings("[control]\nsocket = \"/run/lac.sock\"\n[lac]\n");
    let listen = settings.lac.unwrap().listen;
    assert!(listen.len() == 2 && listen.iter().all(|l| l.optional && l.addr.port() == 0));
    assert!(!settings.l2tp.accept && settings.lns.is_none());
}

#[test]
fn every_key_of_the_documentation_is_taken() {
    let page = include_str!("../../../../docs/configuration.md");
    let example = page
        .split("```toml\n")
        .find(|part| part.contains("[event]"))
        .unwrap();
    let settings = settings(example.split("```").next().unwrap());
    // The example shows the defaults, except for the secret and the LAC's address.
    let mut config = settings.l2tp;
    assert!(config.secret.take().is_some());
    config.accept = false;
    assert_eq!(
        format!("{config:?}"),
        format!("{:?}", l2tp::Config::default())
    );
    assert_eq!(
        format!("{:?}", settings.event),
        format!("{:?}", Event::default())
    );
}

#[test]
fn every_key_of_subscribers_that_is_documented_is_taken_with_its_default() {
    let page = include_str!("../../../../docs/configuration.md");
    let example = page
        .split("```toml\n")
        .find(|part| part.contains("[ppp] "))
        .unwrap();
    let example = example.split("```").next().unwrap();
    let directory = Directory::new("subscribers");
    let user = "[[user]]\nname = \"a\"\npassword = \"b\"\n";
    directory.file("users.toml", user, 0o600);
    directory.file(
        "filters.txt",
        "filter home\nin\n  accept ip from any to any\n",
        0o600,
    );
    let read = |rest: &str| {
        let config = directory.0.join("headend.toml");
        let settings = parse(&config, with_lns(rest).as_bytes());
        settings
            .unwrap_or_else(|faults| panic!("{faults}"))
            .subscribers
    };
    let shown = read(example);
    let smallest = read(
        "[ppp]\naddress = \"10.255.0.1\"\ndns = [\"9.9.9.9\", \"149.112.112.112\"]\n\
         [[pool]]\nname = \"home\"\nranges = [\"10.64.0.0/24\"]\nexcluded = [\"10.64.0.0-10.64.0.9\"]\n\
         [[prefix_pool]]\nname = \"links\"\nranges = [\"2001:db8:1::/48\"]\nlength = 64\nexcluded = [\"2001:db8:1::/60\"]\n\
         [[prefix_pool]]\nname = \"homes\"\nranges = [\"2001:db8:4000::/40\"]\nlength = 56\n\
         [[prefix_pool]]\nname = \"hosts\"\nranges = [\"2001:db8:2::/112\"]\nlength = 128\n\
         [ipv6]\nlink_pool = \"links\"\ndelegated_pool = \"homes\"\naddress_pool = \"hosts\"\n\
         dns = [\"2620:fe::fe\"]\nsearch = [\"example.net\"]\n[users]\nfile = \"users.toml\"\n\
         [filter]\nfile = \"filters.txt\"\ndefault = \"home\"\n\
         [[garden]]\nname = \"unpaid\"\nportal = \"http://192.0.2.80/\"\nfilter = \"home\"\ndns = [\"9.9.9.9\"]\n\
         [radius]\nnas_identifier = \"headend\"\nnas_address = \"192.0.2.1\"\n\
         accounting_store = \"accounts.redb\"\ndisconnect = \"127.0.0.1:3799\"\n\
         [[radius.server]]\nname = \"one\"\nauthentication = \"127.0.0.1:1812\"\n\
         accounting = \"127.0.0.1:1813\"\nsecret = \"change me\"\n\
         [[radius.client]]\naddress = \"192.0.2.7\"\nsecret = \"change me too\"\n\
         [[realm]]\nname = \"example.net\"\nservers = [\"one\"]\nauthenticate = [\"chap\", \"pap\"]\npool = \"home\"\nfilter = \"home\"\nisolate = true\n\
         [throttle]\n\
         [client]\nname = \"user{n}\"\nsecret = \"sesame\"\nnetworks = [\"192.168.7.0/24\"]\n\
         [tun]\nroutes = [\"198.51.100.0/24\"]\n",
    );
    assert_eq!(format!("{shown:?}"), format!("{smallest:?}"));
}

#[test]
fn what_is_wrong_about_subscribers_is_told_with_what_would_be_right() {
    let cases = [
        (
            "[ppp]\naddress = \"0.0.0.0\"",
            "6:11: ppp.address: 0.0.0.0 is no address of a host; give one such as 10.255.0.1",
        ),
        (
            "[ppp]\naddress = \"10.0.0.1\"\nauthenticate = \"none\"",
            "7:16: ppp.authenticate: \"none\" is no list; write [\"chap\"], [\"pap\"], [\"mschapv2\"], [\"eap\"], several in the order of preference, or \"nobody\"",
        ),
        (
            "[[pool]]\nname = \"home\"\nranges = [\"10.0.0.0/24\"]",
            "5:1: pool: is of no use without [ppp]; give [ppp] with address = \"10.255.0.1\", the edge's own",
        ),
        (
            "[client]\nname = \"\"\nsecret = \"x\"",
            "6:8: client.name: is empty; it must have 1 to 240 bytes",
        ),
        (
            "[client]\nname = \"a\"",
            "5:1: client.secret_file: is missing; give the file that holds the password",
        ),
        (
            "[client]\nname = \"a\"\nsecret = \"x\"\ndefault_route = true",
            "8:17: client.default_route: needs a device: give [tun]",
        ),
        (
            "[tun]\n[client]\nname = \"a\"\nsecret = \"x\"\ndefault_route = true\naddresses = false",
            "9:17: client.default_route: needs the clients' addresses on the host: leave addresses = false out",
        ),
        (
            "[client]\nname = \"a\"\nsecret = \"\"",
            "7:10: client.secret: must have 1 to 4096 bytes; give the password",
        ),
        (
            "[[radius.server]]\nauthentication = \"127.0.0.1:1812\"\nsecret = \"\"",
            "7:10: radius.server[1].secret: must have 1 to 4096 bytes; give the secret shared with it",
        ),
        (
            "[[radius.server]]\nauthentication = \"127.0.0.1:1812\"",
            "5:1: radius.server[1].secret_file: is missing; give the file that holds the secret shared with it",
        ),
        (
            "secret = \"\"",
            "5:10: lns.secret: must have 1 to 4096 bytes; leave it out for no secret",
        ),
        (
            "[tun]\nroutes = [\"10.0.0.1/8\"]",
            "6:11: tun.routes: \"10.0.0.1/8\" is no network; write it as \"10.0.0.0/8\" or \"2001:db8::/32\", without bits behind its length",
        ),
    ];
    for (rest, expected) in cases {
        assert_eq!(faults(&with_lns(rest)), format!("headend.toml:{expected}"));
    }
}

#[test]
fn what_is_wrong_about_a_garden_is_reported_with_what_would_be_right() {
    let cases = [
        (
            "[ppp]\naddress = \"10.0.0.1\"\nauthenticate = \"nobody\"\n[[pool]]\nname = \"home\"\nranges = [\"10.0.0.0/24\"]\n\
             [[garden]]\nname = \"none\"\nportal = \"http://a/\"",
            "12:8: garden[1].name: means no garden; give another name",
        ),
        (
            "[ppp]\naddress = \"10.0.0.1\"\nauthenticate = \"nobody\"\n[[pool]]\nname = \"home\"\nranges = [\"10.0.0.0/24\"]\n\
             [[garden]]\nname = \"a\"\nportal = \"http://a b/\"",
            "13:10: garden[1].portal: an address of a portal has no spaces and no other characters than ASCII's; write it as \
             \"http://portal.example/\" or \"192.0.2.80:80\"",
        ),
        (
            "[ppp]\naddress = \"10.0.0.1\"\nauthenticate = \"nobody\"\n[[pool]]\nname = \"home\"\nranges = [\"10.0.0.0/24\"]\n\
             [[garden]]\nname = \"a\"\nportal = \"http://a/\"\nfilter = \"slow\"",
            "14:10: garden[1].filter: there is no filter \"slow\"; give [filter] with a file that has it",
        ),
    ];
    for (rest, expected) in cases {
        assert_eq!(faults(&with_lns(rest)), format!("headend.toml:{expected}"));
    }
}

#[test]
fn what_is_wrong_about_a_realm_is_reported_with_what_would_be_right() {
    let server = "[radius]\n[[radius.server]]\nname = \"one\"\nauthentication = \"127.0.0.1:1812\"\nsecret = \"x\"\n";
    let ppp =
        "[ppp]\naddress = \"10.255.0.1\"\n[[pool]]\nname = \"home\"\nranges = [\"10.0.0.0/24\"]\n";
    let of = |rest: &str| faults(&with_lns(&format!("{ppp}{server}{rest}")));
    for (rest, expected) in [
        ("[[realm]]", "realm[1].name: is missing"),
        (
            "[[realm]]\nname = \"ann@example.net\"",
            "realm[1].name: is no realm; write it without \"@\" and user",
        ),
        (
            "[[realm]]\nname = \"a\"\nservers = [\"two\"]",
            "realm[1].servers: there is no [[radius.server]] with name = \"two\"",
        ),
        (
            "[[realm]]\nname = \"a\"\npool = \"hom\"",
            "realm[1].pool: there is no pool \"hom\"",
        ),
        (
            "[[realm]]\nname = \"a\"\nfilter = \"web\"",
            "realm[1].filter: there is no filter \"web\"",
        ),
        (
            "[[realm]]\nname = \"a\"\n[[realm]]\nname = \"A\"",
            "realm[2].name: \"A\" is given twice; give each realm once",
        ),
        ("[throttle]\nfailures = 0", "throttle.failures: "),
    ] {
        let told = of(rest);
        assert!(told.contains(expected), "{rest}: {told}");
    }
    let good = "[[realm]]\nname = \"example.net\"\nstrip = true\nservers = [\"one\"]\nauthenticate = [\"eap\"]\npool = \"home\"\n";
    let read = settings(&with_lns(&format!("{ppp}{server}{good}[throttle]\n"))).subscribers;
    let (realm, name) = read.realms.find(b"ann@EXAMPLE.net");
    assert_eq!(name, b"ann");
    assert_eq!(realm.and_then(|realm| realm.servers), Some(1));
    assert_eq!(read.throttle, Some(aaa::ThrottleConfig::default()));
}

#[test]
fn eap_needs_a_server() {
    let ppp = "[ppp]\naddress = \"10.255.0.1\"\nauthenticate = [\"eap\", \"mschapv2\"]\n[[pool]]\nname = \"home\"\nranges = [\"10.0.0.0/24\"]\n";
    let directory = Directory::new("eap");
    directory.file(
        "users.toml",
        "[[user]]\nname = \"a\"\npassword = \"b\"\n",
        0o600,
    );
    let source = with_lns(&format!("{ppp}[users]\nfile = \"users.toml\"\n"));
    let path = directory.0.join("headend.toml");
    let told = parse(&path, source.as_bytes()).unwrap_err().to_string();
    assert!(told.contains("needs a server"), "{told}");
    let without = source.replace("\"eap\", ", "");
    assert!(parse(&path, without.as_bytes()).is_ok());
}

#[test]
fn a_client_may_have_the_default_route_of_a_metric() {
    let client = "[tun]\n[client]\nname = \"a\"\nsecret = \"x\"\n";
    for (keys, expected) in [
        ("", None),
        ("default_route = false\n", None),
        ("default_route = true\n", Some(0)),
        (
            "default_route = true\ndefault_route_metric = 50\n",
            Some(50),
        ),
    ] {
        let settings = settings(&with_lns(&format!("{client}{keys}")));
        let client = settings.subscribers.client.unwrap();
        assert_eq!(client.default_route, expected, "{keys}");
    }
}

#[test]
fn who_would_get_no_address_without_a_pool_is_told() {
    let directory = Directory::new("no-pool");
    let user =
        |name: &str, more: &str| format!("[[user]]\nname = \"{name}\"\npassword = \"b\"\n{more}");
    let fixed = |name: &str, last: u8| user(name, &format!("address = \"192.0.2.{last}\"\n"));
    let mixed = fixed("a", 1) + &user("b", "") + &user("c", "address = \"own\"\n");
    directory.file("fixed.toml", &(fixed("a", 1) + &fixed("b", 2)), 0o600);
    directory.file("mixed.toml", &mixed, 0o600);
    directory.file("pools.toml", &user("a", ""), 0o600);
    let radius =
        "[[radius.server]]\nauthentication = \"127.0.0.1:1812\"\nsecret = \"s\"\n".to_owned();
    let users = |name| format!("[users]\nfile = \"{name}.toml\"\n");
    let config = directory.0.join("f");
    let told = |rest: &str| {
        let ppp = "[ppp]\naddress = \"10.255.0.1\"\n";
        let told = match parse(&config, with_lns(&format!("{ppp}{rest}")).as_bytes()) {
            Ok(settings) => settings.advice,
            Err(faults) => faults,
        };
        told.to_string()
            .replace(&format!("{}:5:1: pool: is missing", config.display()), "5")
    };
    let remedy = "give [[pool]] with name = \"home\" and ranges = [\"10.64.0.0/16\"]";
    let server =
        "only a subscriber whose server assigns an address (Framed-IP-Address) can connect";
    let nobody = format!("5, and nobody has an address of its own; {remedy}");
    assert_eq!(told(&users("fixed")), "");
    assert_eq!(told(&users("pools")), nobody);
    assert_eq!(told("authenticate = \"nobody\"\n"), nobody);
    assert_eq!(
        told(&users("mixed")),
        format!("5: 2 of the 3 users have no address of their own; {remedy} (advice)")
    );
    assert_eq!(told(&radius), format!("5: {server}; {remedy} (advice)"));
    let both = told(&(users("mixed") + &radius));
    assert!(both.starts_with(
        "5: 2 of the 3 users of the file have no address of their own; of the others, only a"
    ));
    let pool = "[[pool]]\nname = \"home\"\nranges = [\"10.64.0.0/24\"]\n";
    assert_eq!(told(&(radius + pool)), "");
    let unasked = told(&format!("authenticate = \"nobody\"\n{}", users("fixed")));
    assert!(unasked.contains("users: has no effect"), "{unasked}");
}

#[test]
fn who_is_not_on_line_in_time_is_ended_after_what_the_file_says_or_never() {
    for (given, expected) in [("0.5", Duration::from_millis(500)), ("0", Duration::ZERO)] {
        let settings = settings(&with_lns(&format!(
            "[ppp]\naddress = \"10.255.0.1\"\nauthenticate = \"nobody\"\nsetup_timeout_s = {given}\n\
             [[pool]]\nname = \"home\"\nranges = [\"10.64.0.0/24\"]\n"
        )));
        assert_eq!(settings.subscribers.edge.setup_timeout, expected);
    }
}

#[test]
fn each_section_says_what_it_sets() {
    let settings = settings(&with_lns(
        "host_name = \"edge\"\nsockets = \"per-tunnel\"\nversions = [3]\nhello_interval_s = 0.5\nidle_tunnel_s = 90\n\
         [l2tp]\nretransmit_first_s = 2\nretransmit_cap_s = 16\ncookie_bytes = 4\npseudowires = [\"ppp\"]\n\
         [event]\npoller = \"poll-kept\"\ntimers = \"tree\"\n[limits]\ntunnels = 7\nhalf_open_flood = 0\n\
         half_open_per_source = 9\n[log]\nlevel = \"debug\"\n",
    ));
    let config = &settings.l2tp;
    assert_eq!(config.host_name, "edge");
    assert_eq!((config.versions.v2, config.versions.v3), (false, true));
    assert_eq!(config.hello_interval, Duration::from_millis(500));
    assert_eq!(config.idle_tunnel, Duration::from_secs(90));
    assert_eq!(config.retransmit.first, Duration::from_secs(2));
    let limits = config.limits;
    let half_open = (limits.half_open_flood, limits.half_open_per_source);
    assert_eq!(half_open, (0, 9));
    assert_eq!((config.cookie_len, config.pseudowires.len()), (4, 1));
    assert_eq!(
        (config.limits.tunnels, settings.event.poller),
        (7, PollerKind::PollKept)
    );
    assert_eq!(settings.lns.unwrap().sockets, Sockets::PerTunnel);
    assert_eq!(
        settings.log.level,
        tracing::level_filters::LevelFilter::DEBUG
    );
}

// long: a table of cases
#[test]
fn a_wrong_configuration_is_refused_with_line_key_and_remedy() {
    let cases = [
        // Unknown keys and sections: for a misspelt one the message suggests the right one.
        (
            "lisetn = []",
            "headend.toml:5:1: lns.lisetn: unknown key; did you mean listen?",
        ),
        (
            "[lsn]",
            "headend.toml:5:2: lsn: unknown section; did you mean lns?",
        ),
        (
            "colour = 1",
            "headend.toml:5:1: lns.colour: unknown key; known here: sockets, listen, host_name, versions, \
             secret, secret_file, hello_interval_s, idle_tunnel_s, receive_window, hide",
        ),
        // A wrong unit, in the key and in the value.
        (
            "hello_interval_ms = 60000",
            "headend.toml:5:1: lns.hello_interval_ms: unknown key; did you mean hello_interval_s? It takes seconds",
        ),
        (
            "hello_interval_s = \"60s\"",
            "headend.toml:5:20: lns.hello_interval_s: is a string; it must be a number of seconds, \
             without quotes or unit: hello_interval_s = 60",
        ),
        // Values of the wrong type, out of range, or not among the choices.
        (
            "hide = \"yes\"",
            "headend.toml:5:8: lns.hide: is a string; it must be true or false",
        ),
        (
            "receive_window = 0",
            "headend.toml:5:18: lns.receive_window: 0 is out of range; it must be 1 to 65535 messages",
        ),
        (
            "versions = [2, 4]",
            "headend.toml:5:16: lns.versions: 4 is out of range; it must be 2 to 3",
        ),
        (
            "sockets = \"one\"",
            "headend.toml:5:11: lns.sockets: \"one\" is not known; it can be \"shared\", \"per-tunnel\"",
        ),
        (
            "[event]\npoller = \"kqueue\"",
            "headend.toml:6:10: event.poller: \"kqueue\" is not known; it can be \"poll-rebuilt\", \
             \"poll-kept\", \"epoll\", \"io_uring\"",
        ),
        (
            "[l2tp]\nretransmit_cap_s = 4",
            "headend.toml:6:20: l2tp.retransmit_cap_s: is below 8 seconds, which RFC 2661 5.8 forbids; \
             it must be 8 to 600 seconds",
        ),
        (
            "[l2tp]\nretransmit_first_s = 9",
            "headend.toml:6:22: l2tp.retransmit_first_s: is above retransmit_cap_s, which is 8; it must be that or less",
        ),
        (
            "[l2tp]\ncookie_bytes = 5",
            "headend.toml:6:16: l2tp.cookie_bytes: 5 is not a cookie's length; it can be 0, 4 or 8",
        ),
        (
            "lac = 1",
            "headend.toml:5:1: lns.lac: unknown key; known here: sockets, listen, host_name, \
                     versions, secret, secret_file, hello_interval_s, idle_tunnel_s, receive_window, hide",
        ),
        // Duplicates, and keys that exclude each other.
        (
            "[lns]",
            "headend.toml:5:2: lns: is given twice; give it once",
        ),
        (
            "listen = []",
            "headend.toml:5:1: lns.listen: is given twice; give it once",
        ),
        (
            "[lac]\nlisten = [\"127.0.0.1:1701\"]",
            "headend.toml:6:11: lac.listen: 127.0.0.1:1701 is given twice, first in line 4; give it once",
        ),
        (
            "[lac]\nlisten = [\"0.0.0.0:1701\"]",
            "headend.toml:6:11: lac.listen: 0.0.0.0:1701 overlaps 127.0.0.1:1701 in line 4; \
             give one of them, or another port",
        ),
        (
            "secret = \"one\"\n[lac]\nsecret = \"two\"",
            "headend.toml:7:10: lac.secret: differs from [lns] in line 5; one endpoint serves both: \
             give it once, in [l2tp]",
        ),
        (
            "hide = true",
            "headend.toml:5:8: lns.hide: hides AVPs with the secret, and there is none; give secret or secret_file",
        ),
    ];
    for (rest, expected) in cases {
        assert_eq!(faults(&with_lns(rest)), expected, "{rest}");
    }
}

#[test]
fn what_is_missing_is_named() {
    assert_eq!(
        faults(""),
        "headend.toml: control: is missing; give [control] with socket = \"/run/headend.sock\"\n\
         headend.toml: lns, lac, pppoe, bgp: are all missing; give [lns] to accept tunnels, [lac] to originate them, [pppoe] to serve \
         Ethernet interfaces, [bgp] to exchange routes, or several"
    );
    assert_eq!(
        faults("[control]\n[lns]\n"),
        "headend.toml:1:1: control.socket: is missing; give the path of the control socket: \
         socket = \"/run/headend.sock\"\n\
         headend.toml:2:1: lns.listen: is missing; give the addresses to serve: listen = [\"127.0.0.1:1701\"]"
    );
}

#[test]
fn listen_addresses_are_addresses_of_a_host_with_a_port() {
    let cases = [
        (
            "127.0.0.1",
            "\"127.0.0.1\" has no port; write \"127.0.0.1:1701\"",
        ),
        ("[::1]", "\"[::1]\" has no port; write \"[::1]:1701\""),
        (
            "localhost:1701",
            "\"localhost:1701\" is not an IP address and port; write it like \"127.0.0.1:1701\" or \"[::1]:1701\"",
        ),
        (
            "224.0.0.1:1701",
            "224.0.0.1 is no address of a host; give one of this host's",
        ),
        (
            "[::ffff:10.0.0.1]:1701",
            "::ffff:10.0.0.1 is an IPv4 address; write \"10.0.0.1:1701\"",
        ),
    ];
    for (address, expected) in cases {
        let source =
            format!("[control]\nsocket = \"/run/x\"\n[lns]\nlisten = [\n  \"{address}\",\n]\n");
        assert_eq!(
            faults(&source),
            format!("headend.toml:5:3: lns.listen: {expected}")
        );
    }
}

#[test]
fn all_faults_are_told_in_the_order_of_their_lines() {
    let told =
        faults("[control]\nsocket = 5\nclients = 0\n[lns]\nlisten = \"x\"\n[l2tp]\nhold = 3\n");
    assert_eq!(
        told,
        "headend.toml:2:10: control.socket: is an integer; it must be a string in quotes\n\
         headend.toml:3:11: control.clients: 0 is out of range; it must be 1 to 1024 connections\n\
         headend.toml:5:10: lns.listen: is a string; it must be a list such as [\"127.0.0.1:1701\"]\n\
         headend.toml:7:1: l2tp.hold: unknown key; did you mean hold_s? It takes seconds"
    );
}

#[test]
fn a_file_that_is_no_toml_is_refused_with_its_line() {
    assert!(
        faults("[control]\nsocket = /run/x\n").starts_with("headend.toml:2:10: control.socket: ")
    );
    let bytes = b"[control]\nsocket = \"\xff\"\n";
    let told = parse(Path::new("f"), bytes).unwrap_err().to_string();
    assert_eq!(told, "f:2:11: is not UTF-8 text from here on");
    let told = load(Path::new("/nonexistent/headend.toml"))
        .unwrap_err()
        .to_string();
    assert_eq!(
        told,
        "/nonexistent/headend.toml: cannot be read: No such file or directory (os error 2)"
    );
}

#[test]
fn a_secret_comes_from_a_file_that_others_cannot_read() {
    let directory = Directory::new("secret");
    directory.file("good", "s3cret\n", 0o640);
    directory.file("open", "s3cret\n", 0o644);
    directory.file("empty", "\n", 0o600);
    let config = directory.0.join("headend.toml");
    let read = |name: &str| {
        parse(
            &config,
            with_lns(&format!("secret_file = \"{name}\"\n")).as_bytes(),
        )
        .map_err(|faults| {
            faults
                .to_string()
                .replace(&directory.0.display().to_string(), "DIR")
        })
    };
    let secret = read("good").unwrap().l2tp.secret.unwrap();
    assert_eq!(secret.reveal().as_slice(), b"s3cret");
    let expected = [
        (
            "open",
            "DIR/open: others may use it (mode 0644); chmod it to 0600 or 0640",
        ),
        (
            "empty",
            "DIR/empty: is empty; it must hold the secret on one line",
        ),
        (
            "none",
            "DIR/none: cannot be read: No such file or directory (os error 2)",
        ),
        (
            ".",
            "DIR/.: is not a regular file; it must be a file that holds the secret",
        ),
    ];
    for (name, message) in expected {
        let told = read(name).unwrap_err();
        assert_eq!(
            told,
            format!("DIR/headend.toml:5:15: lns.secret_file: {message}")
        );
    }
    let both = parse(
        &config,
        with_lns("secret = \"a\"\nsecret_file = \"good\"\n").as_bytes(),
    );
    assert_eq!(
        both.unwrap_err().to_string().rsplit("secret_file: ").next(),
        Some("is given beside secret; give one of the two")
    );
}

#[test]
fn no_message_shows_a_secret() {
    let source =
        with_lns("secret = \"hunter2\"\nhello_interval_s = -1\n[lac]\nsecret = \"hunter3\"\n");
    let told = faults(&source);
    assert!(!told.contains("hunter"), "{told}");
    let settings = settings(&with_lns("secret = \"hunter2\"\n"));
    assert!(!format!("{settings:?}").contains("hunter"));
}

#[test]
fn nothing_that_is_no_configuration_causes_a_panic() {
    let sources = [
        "lns = 1\nlac = [1]\ncontrol = 2.0\n",
        "[lns]\nlisten = [[1], {a = 1}]\nversions = [\"2\", 1.5]\nsecret = 1979-05-27\n",
        "[l2tp]\nhold_s = nan\nsetup_timeout_s = inf\nretransmit_cap_s = 1e400\nrouter_id = 0xffffffffffffffffff\n",
        "[control.socket]\na = 1\n[[event]]\n",
        "\u{feff}[control",
    ];
    for source in sources {
        assert!(!faults(source).is_empty());
    }
}

#[test]
fn the_faults_of_a_users_file_are_all_counted() {
    let directory = Directory::new("many-faults");
    let user = "[[user]]\nname = 1\npassword = \"b\"\n";
    directory.file("users.toml", &user.repeat(150), 0o600);
    let rest = "[ppp]\naddress = \"10.255.0.1\"\nmru = 1\n[users]\nfile = \"users.toml\"\n";
    let faults = parse(&directory.0.join("headend.toml"), with_lns(rest).as_bytes()).unwrap_err();
    assert_eq!(faults.len(), 151);
    let lines = faults.lines();
    assert_eq!(lines.len(), 101);
    assert!(
        lines[0].contains("ppp.mru: 1 is out of range"),
        "{}",
        lines[0]
    );
    assert!(lines[99].contains("user[99].name: "), "{}", lines[99]);
    assert!(lines[100].ends_with(": and 51 more"), "{}", lines[100]);
}

#[test]
fn a_user_whose_pool_or_filter_does_not_exist_is_a_fault_of_the_configuration() {
    let directory = Directory::new("unknown-names");
    directory.file(
        "filters.txt",
        "filter guests\nin\n  default accept\n",
        0o600,
    );
    let user = "[[user]]\nname = \"ann\"\npassword = \"a\"\npool = \"hom\"\nfilter = \"gests\"\n";
    let users = directory.file("users.toml", user, 0o600);
    let ppp = "[ppp]\naddress = \"10.255.0.1\"\n[users]\nfile = \"users.toml\"\n";
    let pool = "[[pool]]\nname = \"home\"\nranges = [\"10.0.0.0/24\"]\n";
    let filter = "[filter]\nfile = \"filters.txt\"\n";
    let config = directory.0.join("headend.toml");
    let told = |rest: &str| {
        let told = parse(&config, with_lns(rest).as_bytes()).map(|_| ());
        let place = format!("{}:8:8: users.file: {}:", config.display(), users.display());
        told.map_or_else(
            |faults| faults.to_string().replace(&place, ""),
            |()| "ok".into(),
        )
    };
    assert_eq!(
        told(&[ppp, pool, filter].concat()),
        "4:8: user[1].pool: there is no pool \"hom\"; did you mean \"home\"?\n\
         5:10: user[1].filter: there is no filter \"gests\"; did you mean \"guests\"?"
    );
    assert_eq!(
        told(&[ppp, pool].concat()).lines().last().unwrap(),
        "5:10: user[1].filter: there is no filter \"gests\"; give [filter] with a file that has it"
    );
    // A list with a fault of its own is no reason for a second fault.
    let nameless = told(&[ppp, "[[pool]]\nranges = [\"10.0.0.0/24\"]\n", filter].concat());
    assert!(!nameless.contains("no pool"), "{nameless}");
    let right = user.replace("hom", "home").replace("gests", "guests");
    directory.file("users.toml", &right, 0o600);
    assert_eq!(told(&[ppp, pool, filter].concat()), "ok");
}

#[test]
fn calls_whose_frames_nothing_carries_are_never_offered() {
    let with = |list: &str| parse_l2tp(&format!("pseudowires = [{list}]\n"));
    for (list, advice) in [
        ("\"ppp\"", None),
        (
            "\"vlan\", \"ppp\"",
            Some("headend.toml:6:15: l2tp.pseudowires: \"ethernet\" and"),
        ),
    ] {
        let settings = with(list).unwrap();
        assert_eq!(settings.l2tp.pseudowires, [l2tp::Pseudowire::Ppp], "{list}");
        let told = settings.advice.to_string();
        assert!(told.starts_with(advice.unwrap_or("")), "{told}");
        assert_eq!(told.is_empty(), advice.is_none(), "{told}");
    }
    assert_eq!(
        with("\"ethernet\"").unwrap_err().to_string(),
        "headend.toml:6:15: l2tp.pseudowires: has no type whose frames are carried; write pseudowires = [\"ppp\"]"
    );
    let default = parse_l2tp("").unwrap();
    assert_eq!(default.l2tp.pseudowires, [l2tp::Pseudowire::Ppp]);
}

fn parse_l2tp(keys: &str) -> Result<Settings, Faults> {
    let text = with_lns(&format!("[l2tp]\n{keys}"));
    parse(Path::new("headend.toml"), text.as_bytes())
}

use core::net::Ipv4Addr;

use md5::{Digest, Md5};
use proptest::prelude::*;

use super::*;

const FILE: &str = r#"
# Who may come.
[[user]]
name = "ann@example.net"
password = "the \"cat\" sat"

[[user]]
name = "bob"
password = 'hunter2'
address = "192.0.2.7"
routes = ["198.51.100.0/24", "2001:db8:7::/48", "203.0.113.9"]
filter = "residential"
session_timeout_s = 86_400
idle_timeout_s = 600
interim_interval_s = 300
sessions = 1
isolate = true

[[user]]
name = "cleo"
password = "c"
address = "own"
pool = "business"
sticky = true
"#;

fn users() -> Users {
    Users::parse(FILE).expect("faultless")
}

fn granted(verdict: Verdict) -> Grant {
    match verdict {
        Verdict::Accept(grant) => *grant,
        Verdict::Reject(reject) => panic!("{reject}"),
    }
}

fn faults(text: &str) -> Vec<String> {
    let faults = Users::parse(text).expect_err("not faultless");
    faults.lines()
}

/// The faults of a user with this line beside name and password; the line is the file's fourth.
fn faults_of(line: &str) -> Vec<String> {
    faults(&format!(
        "[[user]]\nname = \"a\"\npassword = \"p\"\n{line}\n"
    ))
}

#[test]
fn a_user_gets_what_its_section_says() {
    let grant = granted(users().authenticate(b"bob", &Proof::Pap(b"hunter2")));
    assert_eq!(
        grant.profile.address,
        Address::Fixed(Ipv4Addr::new(192, 0, 2, 7))
    );
    let routes: Vec<String> = grant.profile.routes.iter().map(Prefix::to_string).collect();
    assert_eq!(
        routes,
        ["198.51.100.0/24", "2001:db8:7::/48", "203.0.113.9/32"]
    );
    assert_eq!(grant.profile.filter.as_deref(), Some("residential"));
    assert_eq!(grant.profile.isolate, Some(true));
    let times = [
        grant.profile.session_timeout,
        grant.profile.idle_timeout,
        grant.profile.interim_interval,
    ];
    let expected = [86_400, 600, 300].map(|s| Some(Duration::from_secs(s)));
    assert_eq!(times, expected);
    assert_eq!(grant.sessions.map(NonZeroU16::get), Some(1));
    assert!(!grant.sticky);

    let grant = granted(users().authenticate(b"cleo", &Proof::Pap(b"c")));
    assert_eq!(grant.profile.address, Address::ItsOwn);
    assert_eq!(grant.profile.pool.as_deref(), Some("business"));
    assert!(grant.sticky && grant.sessions.is_none());

    let grant = granted(users().authenticate(b"ann@example.net", &Proof::Pap(b"the \"cat\" sat")));
    assert_eq!(grant.profile, Profile::default());
}

#[test]
fn only_the_right_password_is_accepted_and_the_operator_learns_why_not() {
    let users = users();
    for (name, proof, reject) in [
        (&b"bob"[..], Proof::Pap(b"hunter3"), Reject::WrongPassword),
        (b"bob", Proof::Pap(b""), Reject::WrongPassword),
        (b"bob", Proof::None, Reject::NoProof),
        (b"Bob", Proof::Pap(b"hunter2"), Reject::UnknownUser),
        (b"", Proof::None, Reject::UnknownUser),
        (b"nobody", Proof::Pap(proof::DECOY), Reject::UnknownUser),
    ] {
        assert_eq!(users.authenticate(name, &proof), Verdict::Reject(reject));
    }
}

/// RFC 2759, section 9.2, through the file: the user "User" with the password "clientPass".
#[test]
fn an_ms_chap_response_is_checked_and_gets_our_proof() {
    let users = Users::parse("[[user]]\nname = \"User\"\npassword = \"clientPass\"\n").unwrap();
    let mut response = [0; 49];
    response[..16].copy_from_slice(b"!@#$%^&*()_+:3|~");
    response[24..48].copy_from_slice(&[
        0x82, 0x30, 0x9e, 0xcd, 0x8d, 0x70, 0x8b, 0x5e, 0xa0, 0x8f, 0xaa, 0x39, 0x81, 0xcd, 0x83,
        0x54, 0x42, 0x33, 0x11, 0x4a, 0x3d, 0x85, 0xd6, 0xdf,
    ]);
    let claim = |user: &[u8], response: &[u8; 49]| {
        let proof = Proof::MsChapV2 {
            challenge: b"[]|}{?/><,`!2&&(",
            response,
            name: b"User",
        };
        users.authenticate(user, &proof)
    };
    let success = granted(claim(b"User", &response)).success;
    assert_eq!(
        success.as_ref().map(|text| &text[..]),
        Some(&b"S=407A5589115FD0D6209F510FE9C04566932CDA56"[..])
    );
    assert_eq!(
        claim(b"nobody", &response),
        Verdict::Reject(Reject::UnknownUser)
    );
    response[47] ^= 1;
    let wrong = Verdict::Reject(Reject::WrongPassword);
    assert_eq!(claim(b"User", &response), wrong);
    assert_eq!(
        users.authenticate(b"User", &Proof::Eap),
        Verdict::Reject(Reject::Eap)
    );
}

#[test]
fn a_chap_response_is_the_digest_of_identifier_password_and_challenge() {
    let users = users();
    let mut md5 = Md5::new();
    md5.update([7]);
    md5.update(b"hunter2");
    md5.update(b"a challenge");
    let right = md5.finalize();
    let claim = |identifier, challenge, response| {
        let proof = Proof::Chap {
            identifier,
            challenge,
            response,
        };
        users.authenticate(b"bob", &proof)
    };
    assert!(matches!(
        claim(7, b"a challenge", &right),
        Verdict::Accept(_)
    ));
    let wrong = Verdict::Reject(Reject::WrongPassword);
    assert_eq!(claim(8, b"a challenge", &right), wrong);
    assert_eq!(claim(7, b"another", &right), wrong);
    let length = Verdict::Reject(Reject::ResponseLength);
    assert_eq!(claim(7, b"a challenge", &right[..15]), length);
}

// long: a table of cases
#[test]
fn what_is_wrong_is_told_with_line_and_key_and_what_would_be_right() {
    for (line, fault) in [
        (
            "pasword = \"x\"",
            "4:1: user[1].pasword: unknown key; did you mean password?",
        ),
        (
            "colour = 1",
            "4:1: user[1].colour: unknown key; known here: name, password, address, ipv6_prefix, delegated_prefix, ipv6_address, ipv6_pool, delegated_pool, routes, rate_down, rate_up, queue, link, pool, filter, garden, tunnel, session_timeout_s, idle_timeout_s, interim_interval_s, sessions, sticky, isolate",
        ),
        (
            "address = \"10.0.0\"",
            "4:11: user[1].address: is no IPv4 address; write \"pool\", \"own\", or an address such as \"192.0.2.7\"",
        ),
        (
            "address = \"224.0.0.1\"",
            "4:11: user[1].address: 224.0.0.1 is no host's address; write \"pool\", \"own\", or an address such as \"192.0.2.7\"",
        ),
        (
            "address = 7",
            "4:11: user[1].address: is an integer; it must be a string in quotes",
        ),
        (
            "address = \"192.0.2.7\"\npool = \"a\"",
            "5:8: user[1].pool: is given beside a fixed address; give one of the two",
        ),
        (
            "routes = \"10.0.0.0/8\"",
            "4:10: user[1].routes: is a string; it must be a list such as [\"192.0.2.0/24\"]",
        ),
        (
            "routes = [\"10.0.0.1/8\"]",
            "4:11: user[1].routes: 10.0.0.1/8 has a length that is too long or leaves bits set; write a network as \"192.0.2.0/24\" or \"2001:db8::/48\"",
        ),
        (
            "routes = [\"10.0.0.0/8\", \"10.0.0.0/8\"]",
            "4:25: user[1].routes: 10.0.0.0/8 is given twice; once is enough",
        ),
        (
            "filter = \"\"",
            "4:10: user[1].filter: is empty; it must have 1 to 253 bytes",
        ),
        (
            "sessions = 0",
            "4:12: user[1].sessions: 0 is out of range; it must be 1 to 65535",
        ),
        (
            "sticky = \"yes\"",
            "4:10: user[1].sticky: is a string; it must be true or false",
        ),
        (
            "interim_interval_s = 59",
            "4:22: user[1].interim_interval_s: 59 is out of range; it must be 60 to 4294967295 seconds",
        ),
        (
            "idle_timeout_s = \"5m\"",
            "4:18: user[1].idle_timeout_s: is a string; it must be an integer of seconds, without quotes or unit",
        ),
        (
            "[user.extra]",
            "4:2: user: is a section; write each as a section of its own: [[user]]",
        ),
        ("[[usr]]", "4:3: usr: unknown section; did you mean user?"),
        (
            "pool = residential",
            "4:8: user[1].pool: is neither a number nor true nor false, and text stands in quotes; write pool = \"TEXT\"",
        ),
        (
            "pool =",
            "4:7: user[1].pool: has no value; write pool = VALUE",
        ),
        (
            "name = \"b\"",
            "4:1: user[1].name: is given twice; give it once",
        ),
    ] {
        assert!(
            faults_of(line).contains(&fault.to_owned()),
            "{:?}",
            faults_of(line)
        );
    }
    assert_eq!(
        faults(
            "[[user]]\n\n[[user]]\nname = \"\"\npassword = \"p\"\n[[user]]\nname = \"x\"\npassword = 5\n"
        ),
        [
            "1:1: user[1].name: is missing; write name = \"NAME\"",
            "1:1: user[1].password: is missing; write password = \"PASSWORD\"",
            "4:8: user[2].name: is empty; it must have 1 to 253 bytes",
            "8:12: user[3].password: is an integer; it must be a string in quotes",
        ]
    );
}

#[test]
fn two_users_with_one_name_or_one_address_are_told_with_both_lines() {
    let text = "[[user]]\nname = \"a\"\npassword = \"p\"\naddress = \"192.0.2.1\"\n\
                [[user]]\nname = \"a\"\npassword = \"q\"\n\
                [[user]]\nname = \"b\"\npassword = \"r\"\naddress = \"192.0.2.1\"\n";
    assert_eq!(
        faults(text),
        [
            "6:8: user[2].name: is the name of the user of line 1; give each user its own",
            "11:11: user[3].address: 192.0.2.1 is the address of the user of line 1; give each user its own",
        ]
    );
}

#[test]
fn no_fault_and_no_print_tells_a_password() {
    for line in [
        "password = hunter2",
        "password = 'hunter2",
        "password = \"hunter2",
        "password = \"\"\"hunter2\nhunter2",
        "password = \"\"\"\n[hunter2\n\"\"\"",
        "password = \"hunter2\" hunter2",
        "password = [\"hunter2\"]",
        "password = { a = \"hunter2\" }",
        "password : hunter2",
        "password hunter2",
        "passwort = \"hunter2\"",
        "password = \"\\hunter2\"",
        "password = \"hunter2\u{1}\"",
    ] {
        let told = faults(&format!("[[user]]\nname = \"a\"\n{line}\n"));
        assert!(!told.is_empty());
        for fault in told {
            assert!(!fault.contains("hunter2"), "{fault}");
        }
    }
    assert_eq!(format!("{:?}", users()), "Users(3)");
}

#[test]
fn a_file_without_users_and_one_with_other_line_ends_are_read() {
    for text in ["", "\n\n# none\n"] {
        assert!(Users::parse(text).expect("faultless").is_empty());
    }
    let text = FILE.replace('\n', "\r\n");
    assert_eq!(Users::parse(&text).expect("faultless").len(), 3);
    assert_eq!(
        faults("name = \"a\"\n"),
        ["1:1: name: is outside of a section; write it below its section, which is one of user"]
    );
}

#[test]
fn a_hundred_faults_are_kept_and_the_others_counted() {
    let text = "[[user]]\nname = 1\npassword = 2\n".repeat(1_000);
    let faults = faults(&text);
    assert_eq!(faults.len(), 101);
    assert_eq!(faults[100], "and 1900 more");
}

#[test]
fn each_of_many_users_is_found() {
    let text: String = (0..5_000)
        .map(|n| {
            format!(
                "[[user]]\nname = \"user{n}\"\npassword = \"secret{n}\"\npool = \"{}\"\n",
                n % 3
            )
        })
        .collect();
    let users = Users::parse(&text).expect("faultless");
    assert_eq!(users.terms.len(), 3);
    for n in 0..5_000 {
        let name = format!("user{n}");
        let proof = format!("secret{n}");
        let grant = granted(users.authenticate(name.as_bytes(), &Proof::Pap(proof.as_bytes())));
        assert_eq!(grant.profile.pool, Some((n % 3).to_string().into()));
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic_and_every_fault_has_a_line_of_it(
        text in "(\\[\\[user\\]\\]|\\[user\\]|name|password|address|routes|sessions|=|\"a\"|\"|'|\\[|\\]|,|7|-|0x|\\{|\\}|\n|\r\n| |#|\\.|\u{e9}|true){0,60}"
    ) {
        if let Err(faults) = Users::parse(&text) {
            let lines = text.matches('\n').count() + 1;
            for fault in &faults {
                let line = fault.place.map(|place| place.line);
                prop_assert!(line.is_some_and(|line| (1..=lines).contains(&line)), "{}", fault);
                prop_assert!(!fault.remedy.is_empty() && !fault.message.is_empty(), "{}", fault);
            }
        }
    }

    #[test]
    fn one_changed_octet_never_makes_the_reader_panic(at in 0..FILE.len(), octet in 0_u8..128) {
        let mut text = FILE.as_bytes().to_vec();
        text[at] = octet;
        let text = String::from_utf8(text).expect("ASCII");
        let _ = Users::parse(&text);
    }
}

#[test]
fn a_pool_or_filter_that_does_not_exist_is_a_fault_where_it_is_named() {
    let known = |pools: &'static [&'static str], filters: &'static [&'static str]| Known {
        pools: Some(pools),
        filters: Some(filters),
        ..Known::default()
    };
    assert!(Users::parse_with(FILE, known(&["business"], &["residential"])).is_ok());
    let told = Users::parse_with(FILE, known(&["busines", "home"], &["guests", "staff"]));
    assert_eq!(
        told.unwrap_err().to_string(),
        "12:10: user[2].filter: there is no filter \"residential\"; there are \"guests\", \"staff\"; \
         give [filter] with a file that has it\n\
         23:8: user[3].pool: there is no pool \"business\"; did you mean \"busines\"?"
    );
    let told = Users::parse_with(FILE, known(&[], &["residential"])).unwrap_err();
    assert_eq!(
        told.to_string(),
        "23:8: user[3].pool: there is no pool \"business\"; give [[pool]] with that name"
    );
    let only_pools = Known {
        pools: Some(&["business"]),
        filters: None,
        ..Known::default()
    };
    assert!(Users::parse_with(FILE, only_pools).is_ok());
}

#[test]
fn rates_template_and_link_of_a_user_are_read_and_checked() {
    let user = "[[user]]\nname = \"a\"\npassword = \"b\"\n";
    let file = |keys: &str| format!("{user}{keys}\n");
    let known = Known {
        templates: Some(&["default", "gold"]),
        links: Some(&[("access-7", [100_000_000, u64::MAX])]),
        ..Known::default()
    };
    let good =
        file("rate_down = \"20mbit\"\nrate_up = \"none\"\nqueue = \"gold\"\nlink = \"access-7\"");
    let users = Users::parse_with(&good, known).expect("faultless");
    let queue = granted(users.authenticate(b"a", &Proof::Pap(b"b")))
        .profile
        .queue;
    assert_eq!(queue.rates_bps, [Some(20_000_000), Some(0)]);
    assert_eq!(queue.templates, [Some("gold".into()), Some("gold".into())]);
    assert_eq!(queue.link.as_deref(), Some("access-7"));
    for (keys, told) in [
        (
            "rate_down = \"fast\"",
            "4:13: user[1].rate_down: \"fast\" is no rate; write it as tc does: \"2.3mbit\", \"500kbit\", \"1gbit\" (bits) or \"250kbps\" (octets)",
        ),
        (
            "rate_up = \"20\"",
            "4:11: user[1].rate_up: 20 bit/s is too little; the lowest rate is 8 kbit/s; is the unit missing, as in \"20mbit\"?",
        ),
        (
            "queue = \"gould\"",
            "4:9: user[1].queue: there is no template \"gould\"; did you mean \"gold\"?",
        ),
        (
            "link = \"north\"",
            "4:8: user[1].link: there is no link \"north\"; there are \"access-7\"; give [[queue.link]] with that name",
        ),
        (
            "rate_down = \"101mbit\"\nlink = \"access-7\"",
            "4:13: user[1].rate_down: 101 Mbit/s is above the 100 Mbit/s that link \"access-7\" carries down; give 100 Mbit/s or less, or another link",
        ),
    ] {
        let faults = Users::parse_with(&file(keys), known).unwrap_err();
        assert_eq!(faults.to_string(), told);
    }
    assert!(Users::parse(&file("queue = \"any\"\nlink = \"any\"")).is_ok());
}

#[test]
fn ipv6_prefixes_and_pools_of_users_are_read_and_given() {
    let text = r#"
[[user]]
name = "alice"
password = "a"
ipv6_prefix = "2001:db8:0:7::/64"
ipv6_address = "2001:db8::9"
delegated_pool = "homes"
routes = ["10.1.0.0/24"]

[[user]]
name = "bob"
password = "b"
delegated_prefix = "2001:db8:100::/48"
"#;
    let users = Users::parse(text).unwrap();
    let grant = |name: &[u8], password: &[u8]| match users.authenticate(name, &Proof::Pap(password))
    {
        Verdict::Accept(grant) => grant,
        Verdict::Reject(why) => panic!("{why}"),
    };
    let text = |prefix: Option<Prefix>| prefix.map(|prefix| prefix.to_string());
    let alice = grant(b"alice", b"a").profile;
    let ipv6 = alice.ipv6.unwrap();
    assert_eq!(text(ipv6.prefix).as_deref(), Some("2001:db8:0:7::/64"));
    assert_eq!(text(ipv6.address).as_deref(), Some("2001:db8::9/128"));
    assert_eq!(
        (ipv6.delegated, ipv6.delegated_pool.as_deref()),
        (None, Some("homes"))
    );
    assert_eq!(alice.routes.len(), 1);
    let bob = grant(b"bob", b"b").profile;
    assert_eq!(
        text(bob.ipv6.unwrap().delegated).as_deref(),
        Some("2001:db8:100::/48")
    );
    assert!(bob.routes.is_empty());
    for (line, part) in [
        ("ipv6_prefix = \"10.0.0.0/8\"", "no IPv6 network"),
        ("delegated_prefix = \"2001:db8::1/48\"", "leaves bits set"),
        ("ipv6_address = \"::\"", "no IPv6 address"),
    ] {
        let text = format!("[[user]]\nname = \"c\"\npassword = \"c\"\n{line}\n");
        let faults = Users::parse(&text).unwrap_err().to_string();
        assert!(faults.contains(part), "{faults}");
    }
}

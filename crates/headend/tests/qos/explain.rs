//! Tests `headend qos explain`: frames in hexadecimal and in captures, in both engines.

use serde_json::Value;

use crate::support::Home;

const POLICY: &str = "[link]\nup = \"80mbit\"\ndown = \"90mbit\"\n\
    [[first]]\nname = \"names\"\nport = 53\n\
    [[class]]\nname = \"guests\"\nhost = \"192.168.2.0/24\"\nrate = \"10%\"\n";

/// UDP 192.168.1.5:49152 > 203.113.0.9:53, without its Ethernet header.
const NAMES: &str = "450000240000000040110000c0a80105cb710009c0000035001000000102030405060708";
const ETHERNET: &str = "0200000000020200000000010800";
/// TCP 192.168.2.9:1 > 203.113.0.9:2 in IP in IP from 192.0.2.1 to 192.0.2.2.
const GUEST: &str = "4500003c0000000040040000c0000201c0000202\
    450000280000000040060000c0a80209cb7100090001000200000000000000005000000000000000";

/// The same TCP in Ethernet with a tag, in VXLAN from 192.0.2.1 to 192.0.2.2.
const VXLAN: &str = "4500005e0000000040110000c0000201c0000202c35112b5004a0000\
    08000000000001000200000000020200000000018100000508004500002800000000400600\
    00c0a80209cb7100090001000200000000000000005000000000000000";

fn explained(home: &Home, words: &[&str]) -> (Option<i32>, Value) {
    let output = home.run(&[&["explain", "--json", "policy.toml"], words].concat());
    let errors = String::from_utf8_lossy(&output.stderr);
    let text = serde_json::from_slice(&output.stdout);
    (
        output.status.code(),
        text.unwrap_or_else(|_| panic!("{words:?}: {errors}")),
    )
}

/// As root, the kernel's class; without the privilege, the reason.
fn agrees(frame: &Value) {
    if frame["kernel"].is_null() {
        let reason = frame["kernel_reason"].as_str().unwrap();
        assert!(reason.contains("only for root"), "{reason}");
    } else {
        assert_eq!(frame["kernel"], frame["ours"]);
    }
}

#[test]
fn a_frame_has_the_same_rule_and_class_in_both_engines() {
    let home = Home::new("explain");
    home.write("policy.toml", POLICY);
    let whole = format!("{ETHERNET}{NAMES}");
    let guest = format!("{ETHERNET}{GUEST}");
    let vxlan = format!("{ETHERNET}{VXLAN}");
    for (words, rule, name) in [
        (&[whole.as_str()][..], Some(2), "first"),
        (&["--ip", NAMES], Some(2), "first"),
        (&[&guest], Some(3), "guests"),
        (&[&vxlan], Some(3), "guests"),
        (&["--down", &guest], None, "rest"),
    ] {
        let (status, document) = explained(&home, words);
        assert_eq!(
            (status, document["schema"].as_str()),
            (Some(0), Some("qos.explain/1"))
        );
        let frame = &document["frames"][0];
        assert_eq!(frame["rule"].as_u64(), rule, "{words:?} {frame}");
        assert_eq!(frame["ours"]["name"], name, "{words:?}");
        agrees(frame);
    }
    let (_, document) = explained(&home, &[&guest]);
    assert_eq!(document["frames"][0]["tunnel"]["src"], "192.168.2.9");
    let text = home.run(&["explain", "policy.toml", &guest]).stdout;
    let text = String::from_utf8(text).unwrap();
    assert!(
        text.contains("(guests), rule 3 of 3: innermost-src 192.168.2.0/24"),
        "{text}"
    );
}

#[test]
fn a_capture_is_explained_whole_or_packet_by_packet() {
    let home = Home::new("explain-capture");
    home.write("policy.toml", POLICY);
    let octets = |hex: &str| -> Vec<u8> {
        let pairs = hex.as_bytes().chunks(2);
        pairs
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect()
    };
    let mut file = octets("d4c3b2a1020004000000000000000000ffff000001000000");
    for packet in [NAMES, GUEST] {
        let frame = octets(&format!("{ETHERNET}{packet}"));
        file.extend([0; 8]);
        file.extend([(frame.len() as u32).to_le_bytes(); 2].concat());
        file.extend(frame);
    }
    std::fs::write(home.path("two.pcap"), file).unwrap();
    let (status, document) = explained(&home, &["two.pcap"]);
    assert_eq!(
        (status, document["frames"].as_array().unwrap().len()),
        (Some(0), 2)
    );
    let (_, document) = explained(&home, &["two.pcap:2"]);
    assert_eq!(document["frames"][0]["packet"], 2);
    assert_eq!(document["frames"][0]["ours"]["name"], "guests");
    let refused = home.run(&["explain", "policy.toml", "two.pcap:3"]);
    let errors = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        errors.contains("two.pcap: has 2 packets, not 3"),
        "{errors}"
    );
}

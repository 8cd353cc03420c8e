//! `headend trace why` as a user runs it.

use std::fs::File;
use std::io::BufWriter;

use capfile::{PcapWriter, Resolution};
use serde_json::Value;
use wire::link::LinkType;

use super::home::Home;

fn lines(text: &str) -> Vec<Value> {
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn causes_add_up_to_the_life_of_each_connection() {
    let home = Home::new("why-sum").with("fast_reuse.dmp.gz");
    let lines = lines(&home.good("why --json fast_reuse.dmp.gz"));
    let (summary, connections) = lines.split_last().unwrap();
    assert_eq!(summary["schema"], "trace.why_summary/1");
    assert!(!connections.is_empty());
    for connection in connections {
        let life = connection["elapsed_ns"].as_i64().unwrap();
        for side in ["a2b", "b2a"] {
            let Some(causes) = connection[side]["causes"].as_object() else {
                continue;
            };
            let times = causes.values().map(|cause| cause["time_ns"].as_i64());
            assert_eq!(times.map(Option::unwrap).sum::<i64>(), life, "{connection}");
        }
    }
}

#[test]
fn neither_parts_nor_threads_change_the_report() {
    let home = Home::new("why-parts").with("fast_reuse.dmp.gz");
    let whole = home.good("why --json --threads 1 fast_reuse.dmp.gz");
    assert_eq!(home.good("why --json --threads 2 fast_reuse.dmp.gz"), whole);
    for part in 0..3 {
        home.good(&format!(
            "why --part {part}/3 --part-file {part} fast_reuse.dmp.gz"
        ));
    }
    assert_eq!(home.good("why --json --merge 2 0 1"), whole);
}

#[test]
fn graphs_have_the_causes_as_a_strip() {
    let home = Home::new("why-strip").with("zwnd.dmp.gz");
    home.good("why -S --svg --html -o1 zwnd.dmp.gz");
    let strip = "<title>receiver_window, ";
    assert!(home.text("a2b_tsg.svg").contains(strip));
    assert!(home.text("a2b.html").contains("causes:[[\"handshake\","));
    home.good("-S --svg -o1 zwnd.dmp.gz");
    assert!(!home.text("a2b_tsg.svg").contains(strip));
    // Without a kind of picture, it is a page.
    let home = Home::new("why-page").with("zwnd.dmp.gz");
    home.good("why -S zwnd.dmp.gz");
    assert!(home.has("a2b.html") && !home.has("a2b_tsg.xpl"));
}

#[test]
fn a_closed_window_is_a_finding() {
    let home = Home::new("why-zero").with("zwnd.dmp.gz");
    let lines = lines(&home.good("why --json zwnd.dmp.gz"));
    // tcptrace counts the same windows of 0.
    assert!(home.good("-l zwnd.dmp.gz").contains("zero win adv"));
    let closed = &lines[0]["findings"]["b"]["zero_window"];
    assert!(closed["count"].as_u64() > Some(0), "{}", lines[0]);
    assert!(closed["longest_ns"].as_u64() > Some(0), "{}", lines[0]);
}

/// An IPv4 packet with a datagram, without checksums.
fn datagram(from_a: bool, ports: [u16; 2], payload: &[u8]) -> Vec<u8> {
    let (hosts, ports) = match from_a {
        true => ([1, 2], ports),
        false => ([2, 1], [ports[1], ports[0]]),
    };
    let length = 28 + payload.len() as u16;
    let mut octets = vec![0x45, 0];
    octets.extend(length.to_be_bytes());
    octets.extend([
        0, 1, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, hosts[0], 10, 0, 0, hosts[1],
    ]);
    octets.extend(ports.map(u16::to_be_bytes).concat());
    octets.extend((length - 20).to_be_bytes());
    octets.extend([0, 0]);
    octets.extend(payload);
    octets
}

/// A capture of RTP with 3 losses, of DNS without an answer, and of a flow that shows nothing.
fn udp(home: &Home, name: &str) {
    let out = BufWriter::new(File::create(home.0.join(name)).unwrap());
    let mut writer = PcapWriter::new(out, LinkType::RAW, Resolution::Nanos).unwrap();
    let mut time = 1_700_000_000_000_000_000;
    let mut write = |octets: Vec<u8>| {
        time += 20_000_000;
        writer.write(time, octets.len() as u32, &octets).unwrap();
    };
    write(datagram(
        true,
        [4000, 53],
        &[0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0],
    ));
    for number in (0..60u16).filter(|number| !(20..23).contains(number)) {
        let mut payload = vec![0x80, 8];
        payload.extend(number.to_be_bytes());
        payload.extend((u32::from(number) * 160).to_be_bytes());
        payload.extend([1, 2, 3, 4]);
        payload.resize(172, 0xd5);
        write(datagram(false, [6000, 6002], &payload));
    }
    for _ in 0..9 {
        write(datagram(true, [7000, 7001], b"plain text"));
    }
}

#[test]
fn udp_flows_are_explained_when_asked() {
    let home = Home::new("why-udp");
    udp(&home, "udp.pcap");
    let said = home.good("why udp.pcap");
    assert!(
        said.contains("The capture has 67 UDP packets; -u explains them."),
        "{said}"
    );
    let said = home.good("why -u udp.pcap");
    let lost = "3 of 60 RTP packets (payload type 8) from a to b were lost before this point (5.0 %, at most 3 in a row until \
                packet 22)";
    assert!(said.contains(lost), "{said}");
    assert!(said.contains("1 question, 1 without an answer"), "{said}");
    assert!(
        said.contains("cannot say: 9 packets from a to b and 0 back"),
        "{said}"
    );
    let whole = home.good("why -u --json udp.pcap");
    let lines = lines(&whole);
    let kinds: Vec<&Value> = lines.iter().map(|line| &line["schema"]).collect();
    assert_eq!(kinds[..3], ["trace.why_udp/1"; 3]);
    let protocols: Vec<&Value> = lines.iter().map(|line| &line["protocol"]).collect();
    assert_eq!(protocols[..3], ["dns", "rtp", "unknown"]);
    let stream = &lines[1]["a2b"]["streams"][0];
    assert_eq!(
        (&stream["lost"], &stream["expected"]),
        (&3.into(), &60.into())
    );
    assert_eq!(lines[3]["worst_udp"], serde_json::json!([2, 1, 3]));
    // The outage is longer than an answer that did not arrive.
    assert_eq!(
        (&lines[1]["lost_ns"], &stream["outage_ns"]),
        (&lines[3]["main"]["lost_ns"], &lines[1]["lost_ns"])
    );
    assert_eq!(
        (&lines[3]["main"]["kind"], &lines[3]["main"]["number"]),
        (&"why_udp".into(), &2.into())
    );
    let only = home.good("why -u --json --oUDP3 udp.pcap");
    assert!(
        !only.contains("rtp") && only.contains("cannot say"),
        "{only}"
    );
    for part in 0..3 {
        home.good(&format!(
            "why -u --part {part}/3 --part-file {part} udp.pcap"
        ));
    }
    assert_eq!(home.good("why -u --json --merge 2 0 1"), whole);
    assert!(home.good("why --json --merge 2 0 1").lines().count() == 1);
}

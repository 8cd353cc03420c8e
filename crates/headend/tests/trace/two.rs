//! `headend trace diff`: two captures of one path, and captures that are not.

use std::fs::{self, File};
use std::io::BufWriter;

use capfile::{Block, PcapWriter, PcapngWriter, Reader, Resolution, Way};
use serde_json::{Value, json};
use wire::link::LinkType;

use crate::home::{Home, Said, source};

/// A packet: its time and bytes, and its length as sent.
type Frame = (i64, u32, Vec<u8>);

fn frames(capture: &str) -> Vec<Frame> {
    let mut reader = Reader::new(File::open(source(capture)).unwrap()).unwrap();
    let (mut block, mut frames) = (Block::new(), Vec::new());
    while reader.read_block(&mut block).unwrap() {
        for record in block.records() {
            frames.push((record.time_ns, record.length, block.bytes(record).to_vec()));
        }
    }
    frames
}

fn write<'a>(home: &Home, name: &str, frames: impl IntoIterator<Item = &'a Frame>) {
    let out = BufWriter::new(File::create(home.0.join(name)).unwrap());
    let mut writer = PcapWriter::new(out, LinkType::ETHERNET, Resolution::Nanos).unwrap();
    for (time, length, octets) in frames {
        writer.write(*time, *length, octets).unwrap();
    }
    writer.flush().unwrap();
}

/// The frames as a second point sees them: 4 ms later from the end with the lower address, 2 ms earlier from the other end;
/// a hop further; by a clock that is off; without every `lost`th.
fn further(frames: &[Frame], offset: i64, lost: usize) -> Vec<Frame> {
    let mut seen = Vec::new();
    for (at, (time, length, octets)) in frames.iter().enumerate() {
        let mut octets = octets.clone();
        let from_low = octets[26..30] < octets[30..34];
        octets[22] = if from_low {
            octets[22] - 1
        } else {
            octets[22] + 1
        };
        if at % lost != lost - 1 {
            let delay = if from_low { 4_000_000 } else { -2_000_000 };
            seen.push((time + offset + delay, *length, octets));
        }
    }
    seen.sort_by_key(|frame| frame.0);
    seen
}

/// Writes the captures that the page names.
pub(crate) fn write_captures(home: &Home) {
    let frames = frames(CAPTURE);
    write(home, "client.pcap", &frames);
    write(home, "server.pcap", &further(&frames, 3_000_000_000, 40));
    let out = BufWriter::new(File::create(home.0.join("user1.pcapng")).unwrap());
    let mut writer = PcapngWriter::new(out, "test").unwrap();
    for name in ["inside", "outside"] {
        writer.interface(LinkType::RAW, name, "", 0).unwrap();
    }
    for (frame, other) in frames.iter().zip(further(&frames, 0, usize::MAX)) {
        for (interface, (_, length, octets)) in [(0, frame), (1, &other)] {
            let time = frame.0 as u64;
            writer
                .packet(interface, time, Way::Inbound, length - 14, &octets[14..])
                .unwrap();
        }
    }
}

const CAPTURE: &str = "fast_reuse.dmp.gz";

fn summary(said: &Said) -> Value {
    let last = said
        .out
        .lines()
        .last()
        .unwrap_or_else(|| panic!("{}", said.err));
    serde_json::from_str(last).unwrap()
}

fn home(name: &str) -> Home {
    let home = Home::new(&format!("diff-{name}"));
    write_captures(&home);
    home
}

#[test]
fn lost_packets_are_listed_with_their_numbers_and_clocks_are_bounded() {
    let home = home("plain");
    let said =
        home.run("diff --json --parquet pairs.parquet --html page.html client.pcap server.pcap");
    assert_eq!(said.status, 0, "{}", said.err);
    let total = frames(CAPTURE).len() as u64;
    let expected: Vec<u64> = (1..=total).filter(|number| number % 40 == 0).collect();
    let found = summary(&said);
    let lines = said
        .out
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut lost: Vec<u64> = Vec::new();
    for line in lines.filter(|line| line["kind"] == "diff_lost") {
        assert_eq!(line["schema"], "trace.diff_lost/1");
        if line["seen_at"] == "A" {
            lost.push(line["packet"].as_u64().unwrap());
        }
    }
    // Packets from B to A that B lacks were added between the points, as far as the captures show.
    let extra = found["b2a"]["only_at_far_point"]["packets"]
        .as_u64()
        .unwrap();
    assert!(lost.iter().all(|number| expected.contains(number)));
    let edges = found["a"]["at_edges"].as_u64().unwrap();
    assert_eq!(
        lost.len() as u64 + extra + edges,
        expected.len() as u64,
        "{found}"
    );
    let piece = &found["clock"]["pieces"][0];
    let bound = |at: usize| piece["offset_ns"][at].as_f64().unwrap();
    assert!(bound(0) <= 3e9 && 3e9 <= bound(1), "{piece}");
    assert!((found["clock"]["round_trip_ns"].as_f64().unwrap() - 6e6).abs() < 1e3);
    assert!(home.read("pairs.parquet").starts_with(b"PAR1"));
    let page = home.text("page.html");
    assert!(page.contains("One-way delay above the least") && !page.contains("http-equiv"));
}

#[test]
fn the_order_of_the_captures_only_swaps_the_directions() {
    let home = home("swapped");
    let one = summary(&home.run("diff --json client.pcap server.pcap"));
    let other = summary(&home.run("diff --json server.pcap client.pcap"));
    for field in ["pairs", "lost", "only_at_far_point"] {
        assert_eq!(one["a2b"][field], other["b2a"][field]);
        assert_eq!(one["b2a"][field], other["a2b"][field]);
    }
}

#[test]
fn clocks_a_year_apart_and_a_short_snap_length_match_too() {
    let home = home("year");
    let frames = frames(CAPTURE);
    let year = 365 * 86_400 * 1_000_000_000;
    let cut: Vec<Frame> = further(&frames, year, usize::MAX)
        .into_iter()
        .map(|(time, length, octets)| (time, length, octets[..octets.len().min(64)].to_vec()))
        .collect();
    write(&home, "year.pcap", &cut);
    let said = home.run("diff --json client.pcap year.pcap");
    assert_eq!(said.status, 0, "{}", said.err);
    let found = summary(&said);
    let pairs = |way: &str| found[way]["pairs"].as_u64().unwrap();
    assert_eq!(pairs("a2b") + pairs("b2a"), frames.len() as u64, "{found}");
    let offset = found["clock"]["pieces"][0]["offset_ns"][0]
        .as_f64()
        .unwrap();
    assert!((offset - year as f64).abs() < 1e7, "{offset}");
}

#[test]
fn one_capture_twice_is_called_that() {
    // Also of few packets, of packets captured twice, and with times that jump by years.
    let captures = [
        "client.pcap",
        "urgent.dmp.gz",
        "sack_nasa_sim.dump.gz",
        "ctu-62604-80.pcap.gz",
        "kday3.pcap.gz",
    ];
    let home = home("twice");
    for capture in &captures[1..] {
        let own = source(capture);
        let path = match own.exists() {
            true => own,
            false => source(&format!("../../interop-trace/{capture}")),
        };
        home.put(capture, &fs::read(path).unwrap());
    }
    for capture in captures {
        let said = home.run(&format!("diff {capture} {capture}"));
        assert_eq!(said.status, 0, "{}", said.err);
        assert!(
            said.out
                .starts_with("A and B are the same capture: the same packets at the same times."),
            "{}",
            said.out
        );
        for wrong in ["stepped", "-0.0", "ppm", "lost A to B"] {
            assert!(!said.out.contains(wrong), "{}", said.out);
        }
        assert!(said.out.contains("every delay is 0"), "{}", said.out);
    }
    let found = summary(&home.run("diff --json client.pcap client.pcap"));
    assert_eq!(found["same_capture"], true);
    assert_eq!(found["clock"]["same"], true, "{found}");
    assert_eq!(found["clock"]["steps"], Value::Array(Vec::new()));
    for way in ["a2b", "b2a"] {
        assert_eq!(
            found[way]["delay"]["least_ns"],
            json!([0.0, 0.0]),
            "{found}"
        );
        assert_eq!(found[way]["delay"]["above_least_max_ns"], 0.0);
    }
}

#[test]
fn a_copy_with_other_times_or_shorter_packets_is_called_that() {
    let home = home("copy");
    let year = 365 * 86_400 * 1_000_000_000;
    for (shift, snap, part) in [
        (3_500_000_000, 1 << 20, "3.500000 s later"),
        (-3_500_000_000, 1 << 20, "3.500000 s earlier"),
        (0, 64, "the same packets at the same times"),
        (year, 64, "365.000000 days later"),
    ] {
        let copy: Vec<Frame> = frames(CAPTURE)
            .into_iter()
            .map(|(time, length, octets)| {
                (
                    time + shift,
                    length,
                    octets[..octets.len().min(snap)].to_vec(),
                )
            })
            .collect();
        write(&home, "copy.pcap", &copy);
        let said = home.run("diff client.pcap copy.pcap");
        let sentence = said.out.lines().next().unwrap_or_default();
        assert!(
            sentence.starts_with("A and B are the same capture") && sentence.contains(part),
            "{}",
            said.out
        );
        let found = summary(&home.run("diff --json client.pcap copy.pcap"));
        let piece = &found["clock"]["pieces"][0];
        assert_eq!(
            piece["offset_ns"],
            json!([shift as f64, shift as f64]),
            "{piece}"
        );
        assert_eq!(piece["drift_ppm"], 0.0);
    }
}

#[test]
fn a_part_of_a_capture_is_called_that() {
    let home = home("subset");
    let frames = frames(CAPTURE);
    let length = frames.len();
    let later = |frame: &Frame| (frame.0 + 7_000_000_000, frame.1, frame.2.clone());
    let (from, to) = (length / 3, length * 2 / 3);
    write(&home, "middle.pcap", &frames[from..to]);
    let holes: Vec<Frame> = (0..)
        .zip(&frames)
        .filter(|(at, _)| at % 7 != 3)
        .map(|(_, frame)| later(frame))
        .collect();
    let missing = length - holes.len();
    write(&home, "holes.pcap", &holes);
    for (line, sentence) in [
        (
            "client.pcap middle.pcap",
            format!(
                "B is a part of A: A has every packet of B, and B has them at the same times, without {} packets of A.",
                length - (to - from)
            ),
        ),
        (
            "client.pcap holes.pcap",
            format!(
                "B is a part of A: A has every packet of B, and B has them with times that are 7.000000 s later, without \
                 {missing} packets of A."
            ),
        ),
        (
            "holes.pcap client.pcap",
            format!(
                "A is a part of B: B has every packet of A, and A has them with times that are 7.000000 s later, without \
                 {missing} packets of B."
            ),
        ),
    ] {
        let said = home.run(&format!("diff {line}"));
        assert_eq!(said.out.lines().next(), Some(&*sentence), "{}", said.out);
        assert!(!said.out.contains("stepped"), "{}", said.out);
    }
}

#[test]
fn headers_beyond_the_snap_length_are_reported_as_that() {
    let home = home("headers");
    // An IPv6 packet of TCP: its headers are longer than 64 bytes of Ethernet.
    let mut octets = vec![0; 14];
    octets[12..].copy_from_slice(&[0x86, 0xdd]);
    octets.extend([0x60, 0, 0, 0, 0, 20, 6, 64]);
    octets.extend([1; 32]);
    octets.extend([2; 10]);
    write(&home, "short.pcap", &[(0, 74, octets)]);
    let said = home.run("diff client.pcap short.pcap");
    assert_eq!(said.status, 1);
    assert!(
        said.err
            .contains("short.pcap: the snap length cut off 1 packet"),
        "{}",
        said.err
    );
}

#[test]
fn captures_of_different_paths_are_refused_with_the_best_match() {
    let home = home("different").with("udpping.dmp.gz");
    let said = home.run("diff client.pcap udpping.dmp.gz");
    assert_eq!(said.status, 1);
    assert!(
        said.err.contains("not captures of one path") && said.err.contains("best match"),
        "{}",
        said.err
    );
    assert_eq!(said.out, "");
}

#[test]
fn a_part_of_the_time_and_a_part_of_the_flows_are_no_losses() {
    let home = home("part");
    let frames = frames(CAPTURE);
    let seen = further(&frames, 3_000_000_000, usize::MAX);
    write(
        &home,
        "middle.pcap",
        &seen[seen.len() / 3..seen.len() * 2 / 3],
    );
    let found = summary(&home.run("diff --json client.pcap middle.pcap"));
    assert_eq!(found["a2b"]["lost"]["packets"], 0, "{found}");
    assert_eq!(found["b2a"]["lost"]["packets"], 0, "{found}");
    assert!(found["a"]["at_edges"].as_u64().unwrap() > 0);
}

#[test]
fn empty_damaged_and_missing_files_are_named() {
    let home = home("bad");
    home.put("empty.pcap", b"");
    let whole = home.read("server.pcap");
    home.put("cut.pcap", &whole[..whole.len() - 5]);
    write(&home, "none.pcap", []);
    for (line, status, part) in [
        (
            "diff client.pcap empty.pcap",
            1,
            "empty.pcap: the file is empty",
        ),
        (
            "diff client.pcap none.pcap",
            1,
            "none.pcap: no packet with an IP header",
        ),
        (
            "diff client.pcap nothing.pcap",
            1,
            "nothing.pcap: cannot be opened",
        ),
        (
            "diff client.pcap cut.pcap",
            1,
            "cut.pcap: first fault at octet",
        ),
        ("diff client.pcap .", 1, "this is no file"),
        ("diff client.pcap", 1, "two interfaces"),
        (
            "diff client.pcap server.pcap --csv",
            2,
            "--csv is not a flag of diff",
        ),
        ("diff", 2, "0 files were named"),
    ] {
        let said = home.run(line);
        assert_eq!(said.status, status, "{line}: {}", said.err);
        assert!(said.err.contains(part), "{line}: {}", said.err);
        // A damaged file is compared as far as it can be read.
        assert_eq!(!said.out.is_empty(), line.contains("cut"), "{line}");
    }
    fs::remove_dir_all(&home.0).unwrap();
}

#[test]
fn both_interfaces_of_one_capture_are_compared() {
    let home = home("one");
    let said = home.run("diff --json user1.pcapng");
    assert_eq!(said.status, 0, "{}", said.err);
    let found = summary(&said);
    assert_eq!(found["clock"]["same"], true);
    let pairs = |way: &str| found[way]["pairs"].as_u64().unwrap();
    assert!(pairs("a2b") > 0 && pairs("b2a") > 0, "{found}");
    assert_eq!(found["a2b"]["lost"]["packets"], 0);
}

/// A pcapng file's statistics of an interface (draft-ietf-opsawg-pcapng 4.6): isb_ifrecv (4), isb_ifdrop (5), isb_osdrop (7).
fn statistics(interface: u8, counters: &[(u8, u8)]) -> Vec<u8> {
    let length = 28 + 12 * counters.len() as u8;
    let mut block = vec![5, 0, 0, 0, length, 0, 0, 0, interface, 0, 0, 0];
    block.extend([0; 8]);
    for (code, count) in counters {
        block.extend([*code, 0, 8, 0, *count, 0, 0, 0, 0, 0, 0, 0]);
    }
    block.extend([0, 0, 0, 0, length, 0, 0, 0]);
    block
}

#[test]
fn packets_that_the_capture_itself_dropped_are_reported_once_for_each_file() {
    let home = home("dropped");
    let lossy = [
        home.read("user1.pcapng"),
        statistics(0, &[(4, 200), (5, 10)]),
        statistics(1, &[(4, 100), (7, 2)]),
    ];
    home.put("lossy.pcapng", &lossy.concat());
    let sentence = "headend: lossy.pcapng: the capture lost 12 packets: the interface dropped 10, the operating system \
                    dropped 2 (the interface received 300); a packet that the capture lost looks like one that the path \
                    lost\n";
    let object = "{\"schema\":\"trace.file/1\",\"kind\":\"file\",\"file\":\"lossy.pcapng\",\"received\":300,\
                  \"accepted\":null,\"dropped_by_interface\":10,\"dropped_by_system\":2}";
    for line in [
        "",
        "-l ",
        "--json ",
        "why ",
        "why --json ",
        "diff -q --json ",
    ] {
        let said = home.run(&format!("{line}lossy.pcapng"));
        assert_eq!(said.status, 0, "{line}: {}", said.err);
        assert_eq!(
            said.err.matches(sentence).count(),
            1,
            "{line}: {}",
            said.err
        );
        let lines: Vec<&str> = said.out.lines().collect();
        match line {
            "diff -q --json " => {
                assert_eq!(summary(&said)["a"]["capture_dropped"], 12);
            }
            line if line.contains("json") => {
                assert_eq!(lines[lines.len() - 2], object, "{line}");
            }
            _ => {}
        }
    }
    // A capture that lost nothing has a line, one that does not say has none.
    let whole = [home.read("user1.pcapng"), statistics(1, &[(5, 0)])];
    home.put("whole.pcapng", &whole.concat());
    for (file, lines) in [("whole.pcapng", 1), ("user1.pcapng", 0)] {
        let said = home.run(&format!("--json {file}"));
        assert!(!said.err.contains("the capture lost 0"), "{}", said.err);
        let found = said.out.matches("\"dropped_by_interface\":0").count();
        assert_eq!(found, lines, "{file}");
        assert_eq!(said.out.contains("trace.file/1"), lines > 0, "{file}");
    }
    let said = home.run("diff -q --json user1.pcapng");
    assert_eq!(summary(&said)["a"]["capture_dropped"], Value::Null);
}

/// The header of an outer IPv4 packet (RFC 791) or IPv6 packet (RFC 8200).
fn outer(is_v6: bool, protocol: u8, length: usize) -> Vec<u8> {
    let [high, low] = (length as u16).to_be_bytes();
    if is_v6 {
        let mut header = vec![0x60, 0, 0, 0, high, low, protocol, 64];
        header.extend([0xfd; 32]);
        return header;
    }
    let [high, low] = (length as u16 + 20).to_be_bytes();
    let mut header = vec![0x45, 0, high, low, 0, 0, 0, 0, 64, protocol, 0, 0];
    header.extend([192, 0, 2, 1, 192, 0, 2, 2]);
    header
}

/// A frame inside of another encapsulation: IEEE 802.1Q and 802.1ad, RFC 3032, RFC 2784, RFC 7348, RFC 2516.
fn wrapped(kind: &str, frame: &[u8]) -> Vec<u8> {
    let (addresses, packet) = (&frame[..12], &frame[14..]);
    let behind = |header: &[u8], inner: &[u8]| [header, inner].concat();
    let content = match kind {
        "vlan" => behind(&[0x81, 0, 0, 100], &frame[12..]),
        "qinq" => behind(&[0x88, 0xa8, 0, 10, 0x81, 0, 0, 100], &frame[12..]),
        "mpls" => behind(&[0x88, 0x47, 0, 6, 0x40, 64, 0, 12, 0x81, 64], packet),
        "pppoe" => {
            let length = (packet.len() as u16 + 2).to_be_bytes();
            let header = [0x88, 0x64, 0x11, 0, 0, 9, length[0], length[1], 0, 0x21];
            behind(&header, packet)
        }
        "gre" | "gre6" | "gretap" => {
            let (ethertype, inner) = match kind {
                "gretap" => ([0, 0, 0x65, 0x58], frame),
                _ => ([0, 0, 0x08, 0], packet),
            };
            let (is_v6, own) = match kind {
                "gre6" => (true, [0x86, 0xdd]),
                _ => (false, [0x08, 0]),
            };
            let header = outer(is_v6, 47, inner.len() + 4);
            [&own[..], &header, &ethertype, inner].concat()
        }
        _ => {
            let [high, low] = (frame.len() as u16 + 16).to_be_bytes();
            let udp = [0xc0, 0, 0x12, 0xb5, high, low, 0, 0];
            let vxlan = [8, 0, 0, 0, 0, 0, 5, 0];
            let header = outer(false, 17, frame.len() + 16);
            [&[0x08, 0][..], &header, &udp, &vxlan, frame].concat()
        }
    };
    [addresses, &content].concat()
}

#[test]
fn a_tunnel_around_either_capture_changes_no_result() {
    let home = home("wrapped");
    let frames = frames(CAPTURE);
    let seen = further(&frames, 3_000_000_000, 40);
    let plain = summary(&home.run("diff --json client.pcap server.pcap"));
    for (kind, layer) in [
        ("vlan", "vlan"),
        ("qinq", "vlan"),
        ("mpls", "mpls"),
        ("pppoe", "pppoe"),
        ("gre", "gre"),
        ("gre6", "gre"),
        ("gretap", "gre"),
        ("vxlan", "vxlan"),
    ] {
        for (near, far) in [(&frames, &seen), (&seen, &frames)] {
            let around: Vec<Frame> = far
                .iter()
                .map(|(time, length, octets)| {
                    let inside = wrapped(kind, octets);
                    let more = inside.len() - octets.len();
                    (*time, length + more as u32, inside)
                })
                .collect();
            write(&home, "plain.pcap", near);
            write(&home, "around.pcap", &around);
            let found = summary(&home.run("diff --json plain.pcap around.pcap"));
            let layers = found["b"]["encapsulations"].to_string();
            assert!(layers.contains(layer), "{kind}: {layers}");
            let is_swapped = near.len() < far.len();
            for (way, same) in [("a2b", "b2a"), ("b2a", "a2b")] {
                let expected = &plain[if is_swapped { same } else { way }];
                for field in ["pairs", "bytes", "lost", "only_at_far_point", "parts"] {
                    let (ours, theirs) = (&found[way][field], &expected[field]);
                    assert_eq!(ours, theirs, "{kind} {way} {field}");
                }
            }
        }
    }
}

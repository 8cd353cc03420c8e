//! A policy as an eBPF program in a guest's kernel, whose verifier is older than this machine's.

use crate::kernel;
use crate::runner::Bench;
use anyhow::{Context, Result, ensure};
use capfile::{PcapWriter, Resolution};
use serde_json::Value;
use wire::link::LinkType;

use super::kernel_classifier::{Chance, KINDS};

/// Packets of each kind.
const EACH: usize = 40;

/// Rules on addresses, ports, DSCP and tags, of all three headers.
const POLICY: &str = "[link]
up = \"80mbit\"
down = \"90mbit\"
[[first]]
name = \"low ports\"
port = [53, \"1024-20000\"]
proto = \"udp\"
[[class]]
name = \"hosts\"
host = [\"10.1.0.0/17\", \"fd01::/66\"]
rate = \"10%\"
[[class]]
name = \"tunnels\"
proto = [\"ipip\", \"gre\", \"l2tp\", 41]
header = \"outer\"
rate = \"10%\"
[[class]]
name = \"inner\"
remote = \"10.9.128.0/17\"
header = \"tunnel\"
rate = \"10%\"
[[class]]
name = \"tagged\"
vlan = 7
rate = \"10%\"
";

const SCRIPT: &str = "set -e
cp headend /tmp
/tmp/headend qos explain --json policy.toml frames.pcap > frames.json";

/// Frames with and without tags, in both engines of the guest.
pub(crate) fn agrees_with_the_guest(bench: &Bench<'_>) -> Result<()> {
    let mut chance = Chance(16);
    let frames: Vec<Vec<u8>> = KINDS
        .iter()
        .flat_map(|kind| [kind; EACH])
        .zip(0..)
        .map(|(kind, number)| framed(number, &kind.packet(&mut chance)))
        .collect();
    std::fs::write(bench.directory.join("policy.toml"), POLICY)?;
    let file = std::fs::File::create(bench.directory.join("frames.pcap"))?;
    let mut writer = PcapWriter::new(file, LinkType::ETHERNET, Resolution::Nanos)?;
    for frame in &frames {
        writer.write(0, frame.len() as u32, frame)?;
    }
    kernel::bring_headend(bench)?;
    kernel::boot(bench, SCRIPT)?;
    let text = std::fs::read_to_string(bench.directory.join("frames.json"))?;
    compare(&serde_json::from_str(&text)?)
}

/// The packet in a frame: plain, with a tag, with two.
fn framed(number: usize, packet: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    let tags: [&[u8]; 3] = [&[], &[0x81, 0, 0x20, 7], &[0x88, 0xa8, 0, 7, 0x81, 0, 0, 9]];
    frame.extend(tags[number % 3]);
    let is_ipv4 = packet.first().is_some_and(|first| first >> 4 == 4);
    frame.extend(if is_ipv4 { [8, 0] } else { [0x86, 0xdd] });
    frame.extend(packet);
    frame
}

/// Every packet has the same class in both, and every class was chosen.
fn compare(document: &Value) -> Result<()> {
    let frames = document["frames"].as_array().context("no frames")?;
    ensure!(
        frames.len() == KINDS.len() * EACH && document["differ"] == 0,
        "{} frames, {} differ",
        frames.len(),
        document["differ"]
    );
    let mut classes = std::collections::BTreeSet::new();
    for frame in frames {
        ensure!(
            !frame["kernel"].is_null() && frame["kernel"] == frame["ours"],
            "{frame}"
        );
        classes.insert(frame["ours"]["name"].to_string());
    }
    ensure!(classes.len() >= 4, "only the classes {classes:?}");
    Ok(())
}

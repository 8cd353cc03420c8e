//! The same packets through Linux's queues and through ours.

use crate::kernel::{self, Experiment, Timed};
use crate::runner::Bench;
use anyhow::{Result, ensure};

/// A UDP packet over IPv4.
fn udp(traffic_class: u8, source: [u8; 4], ports: (u16, u16), length: u16) -> Vec<u8> {
    let mut packet = vec![0; usize::from(length)];
    packet[0] = 0x45;
    packet[1] = traffic_class;
    packet[2..4].copy_from_slice(&length.to_be_bytes());
    packet[8] = 64;
    packet[9] = 17;
    packet[12..16].copy_from_slice(&source);
    packet[16..20].copy_from_slice(&[10, 9, 0, 1]);
    packet[20..22].copy_from_slice(&ports.0.to_be_bytes());
    packet[22..24].copy_from_slice(&ports.1.to_be_bytes());
    packet[24..26].copy_from_slice(&(length - 20).to_be_bytes());
    packet
}

/// Linux's own queues in a guest.
pub(crate) fn serve_alike(bench: &Bench<'_>) -> Result<()> {
    let packets = (0..=255u8)
        .map(|class| Timed {
            at_us: u64::from(class) * 100,
            packet: udp(class, [10, 1, 0, 1], (1000, 2000), 200),
        })
        .collect();
    let outcomes = kernel::run(
        bench,
        &[Experiment {
            setup: "tc qdisc add dev a0 root handle 1: htb default 1; tc class add dev a0 parent 1: classid 1:1 htb rate 1mbit quantum 1600; tc qdisc add dev a0 parent 1:1 handle 2: pfifo_fast".to_owned(),
            packets,
            seconds: 3,
        }],
    )?;
    let arrived = outcomes[0]
        .fates
        .iter()
        .filter(|fate| fate.arrived_ns.is_some())
        .count();
    ensure!(
        arrived == 256,
        "{arrived} {} {}",
        outcomes[0].qdiscs,
        outcomes[0].classes
    );
    Ok(())
}

//! A guest with a real Linux kernel, in virtual time. It gets packets on a schedule and reports the outcome of
//! each.
//!
//! ```text
//! (namespace "s")  s0 ==== r0 (the guest forwards) a0 ==== b0  (namespace "b")
//! send: raw IP packets                 the qdiscs           listen: every IP packet
//!                                      under test           that arrives
//! ```
//!
//! A guest takes some 15 seconds to boot, so a test runs all its experiments in one guest.

pub(crate) mod captured;
pub(crate) mod ours;
pub(crate) mod probe;

use crate::runner::Bench;
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// The variable that names a User Mode Linux to use instead of QEMU's guest; `kernel-lab/build-uml` builds one.
const UML: &str = "HEADEND_UML";

/// How long a guest may run on this machine's clock, which a busy machine stretches.
const GUEST_SECONDS_MAX: &str = "1200";

/// A packet and its send time, in microseconds after the experiment's start.
#[derive(Debug, Clone)]
pub(crate) struct Timed {
    pub(crate) at_us: u64,
    /// Starts at its IPv4 or IPv6 header. The sender overwrites its last four bytes with its number.
    pub(crate) packet: Vec<u8>,
}

/// Packets are forwarded rather than created on the router, because only forwarding turns their TOS into a
/// priority. Both ends of a wire have the same MAC address, so that no address resolution is needed.
const HOSTS: &str = "set -e
ip netns add s; ip netns add b
ip link add r0 address 02:00:00:00:00:0a type veth peer name s0 address 02:00:00:00:00:0a netns s
ip link add a0 address 02:00:00:00:00:0b type veth peer name b0 address 02:00:00:00:00:0b netns b
sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0
sysctl -qw net.ipv4.conf.r0.rp_filter=0 net.ipv4.conf.a0.rp_filter=0 net.ipv6.conf.all.forwarding=1
for i in r0 a0; do ip link set $i arp off up; done
ip -n s link set s0 arp off up; ip -n b link set b0 arp off up
ip addr add 10.0.0.1/30 dev r0; ip -n s addr add 10.0.0.2/30 dev s0
ip -6 addr add fd00::1/64 nodad dev r0; ip -n s -6 addr add fd00::2/64 nodad dev s0
ip addr add 10.0.0.5/30 dev a0; ip -6 addr add fd01::1/64 nodad dev a0
ip route add default dev a0; ip -6 route add default dev a0
ip -n s route add default dev s0; ip -n s -6 route add default dev s0
";

/// The clock skips idle time, even while the guest waits for this machine's files. So the probe and its
/// libraries are read before anything is timed, and nothing is read or written meanwhile.
const WARM_UP: &str = "cp probe /tmp/probe; cp warm.schedule /tmp/schedule
cat $(ldd probe | grep -o '/[^ ]*') > /dev/null
for again in 1 2; do
ip netns exec b /tmp/probe listen /tmp/arrived 1 & listener=$!; sleep 0.2
ip netns exec s /tmp/probe send /tmp/schedule /tmp/sent; wait $listener
done
";

/// One experiment in a guest.
pub(crate) struct Experiment {
    /// Shell commands before the packets, mostly `tc ... dev a0`. If any fails, the test fails.
    pub(crate) setup: String,
    pub(crate) packets: Vec<Timed>,
    /// How long to listen after the first packet has arrived, in seconds.
    pub(crate) seconds: u32,
}

/// The outcome of one packet.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Fate {
    /// When it was passed to the kernel, in nanoseconds of the guest's clock.
    pub(crate) sent_ns: u64,
    /// When it arrived; `None` if it did not.
    pub(crate) arrived_ns: Option<u64>,
    /// Its TOS octet or traffic class on arrival.
    pub(crate) traffic_class: u8,
}

/// A guest's results for one experiment.
pub(crate) struct Outcome {
    /// One for each packet, in the given order.
    pub(crate) fates: Vec<Fate>,
    /// `tc -s -j qdisc show dev a0`.
    pub(crate) qdiscs: Value,
    /// `tc -s class show dev a0`: not every kind of class supports JSON.
    pub(crate) classes: String,
}

/// Boots a guest and runs `experiments` one after the other.
///
/// # Errors
/// The guest does not boot, a command in it fails, or its output cannot be parsed.
pub(crate) fn run(bench: &Bench<'_>, experiments: &[Experiment]) -> Result<Vec<Outcome>> {
    let directory = &bench.directory;
    // A guest's own /tmp hides the host's, so the program is copied.
    std::fs::copy(std::env::current_exe()?, directory.join("probe"))?;
    let mut script = String::from(HOSTS);
    // The first packet on a path takes a hundred times as long as the second.
    if let Some(first) = experiments
        .iter()
        .flat_map(|experiment| &experiment.packets)
        .next()
    {
        let packets: Vec<Timed> = (0..4)
            .map(|at| Timed {
                at_us: 1_000 * at,
                packet: first.packet.clone(),
            })
            .collect();
        write_schedule(&directory.join("warm.schedule"), &packets)?;
        script.push_str(WARM_UP);
    }
    for (index, experiment) in experiments.iter().enumerate() {
        write_schedule(
            &directory.join(format!("{index}.schedule")),
            &experiment.packets,
        )?;
        write!(
            script,
            "tc qdisc del dev a0 root 2>/dev/null || true\n{}\n\
             cp {index}.schedule /tmp/schedule\n\
             ip netns exec b /tmp/probe listen /tmp/arrived {} & listener=$!; sleep 0.2\n\
             ip netns exec s /tmp/probe send /tmp/schedule /tmp/sent; wait $listener\n\
             cp /tmp/sent {index}.sent; cp /tmp/arrived {index}.arrived\n\
             tc -s -j qdisc show dev a0 > {index}.qdiscs; tc -s class show dev a0 > {index}.classes\n",
            experiment.setup, experiment.seconds
        )?;
    }
    boot(bench, &script)?;
    (0..experiments.len())
        .map(|index| {
            read_outcome(directory, index, &experiments[index])
                .with_context(|| format!("experiment {index}"))
        })
        .collect()
}

/// Runs a shell script in a guest, in the test's directory.
///
/// # Errors
/// Any exit status but 0, with the output.
pub(crate) fn boot(bench: &Bench<'_>, script: &str) -> Result<String> {
    boot_with(bench, script, &[])
}

/// The same, with more options of `kernel-lab/boot`, for example `-m` for its memory.
///
/// # Errors
/// Any exit status but 0, with the output.
pub(crate) fn boot_with(bench: &Bench<'_>, script: &str, options: &[&str]) -> Result<String> {
    std::fs::write(bench.directory.join("script"), script)?;
    boot_on(bench, "boot", bench.kernel, options)
}

/// The same on User Mode Linux if [`UML`] names one: its guests are many times as fast, but lack modules.
///
/// # Errors
/// Any exit status but 0, with the output.
pub(crate) fn boot_fast(bench: &Bench<'_>, script: &str, options: &[&str]) -> Result<String> {
    match std::env::var_os(UML) {
        Some(kernel) => {
            std::fs::write(bench.directory.join("script"), script)?;
            boot_on(bench, "boot-uml", kernel.as_ref(), options)
        }
        None => boot_with(bench, script, options),
    }
}

fn boot_on(bench: &Bench<'_>, boot: &str, kernel: &Path, options: &[&str]) -> Result<String> {
    let output = Command::new(bench.root.join("interop/kernel-lab").join(boot))
        .arg("-k")
        .arg(kernel)
        .args(["-t", GUEST_SECONDS_MAX])
        .args(options)
        .args(["--", "bash", "./script"])
        .current_dir(&bench.directory)
        .env("TMPDIR", &bench.directory)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("interop/kernel-lab/{boot}"))?;
    std::fs::write(bench.directory.join("guest.log"), &output.stderr)?;
    if !output.status.success() {
        bail!(
            "the guest ended with {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Copies the headend under test to the test's directory without debug information, which is nine tenths of it,
/// because a guest reads slowly.
///
/// # Errors
/// It cannot be copied.
pub(crate) fn bring_headend(bench: &Bench<'_>) -> Result<()> {
    let place = bench.directory.join("headend");
    let stripped = Command::new("strip")
        .arg("-o")
        .args([&place, bench.headend])
        .stderr(Stdio::null())
        .status();
    if !stripped.is_ok_and(|status| status.success()) {
        std::fs::copy(bench.headend, &place)?;
    }
    Ok(())
}

/// Writes a line for each packet: its time, its length, and its bytes without trailing zeros.
///
/// # Errors
/// A packet without room for its number, or a file that cannot be written.
pub(crate) fn write_schedule(path: &Path, packets: &[Timed]) -> Result<()> {
    let mut text = String::new();
    for timed in packets {
        let packet = &timed.packet;
        ensure!(packet.len() >= 24, "a packet has no room for its number");
        let content = packet
            .iter()
            .rposition(|&octet| octet != 0)
            .map_or(0, |last| last + 1);
        write!(text, "{} {} ", timed.at_us, packet.len())?;
        packet[..content]
            .iter()
            .try_for_each(|octet| write!(text, "{octet:02x}"))?;
        text.push('\n');
    }
    Ok(std::fs::write(path, text)?)
}

fn read_outcome(directory: &Path, index: usize, experiment: &Experiment) -> Result<Outcome> {
    let read = |end: &str| {
        std::fs::read_to_string(directory.join(format!("{index}.{end}")))
            .with_context(|| format!("{index}.{end}"))
    };
    let mut fates = vec![Fate::default(); experiment.packets.len()];
    for line in read("sent")?.lines() {
        let [number, time] = numbers(line)?;
        fates[usize::try_from(number)?].sent_ns = time;
    }
    for line in read("arrived")?.lines() {
        let [number, time, traffic_class] = numbers(line)?;
        if let Some(fate) = fates.get_mut(usize::try_from(number)?) {
            ensure!(fate.arrived_ns.is_none(), "packet {number} arrived twice");
            fate.arrived_ns = Some(time);
            fate.traffic_class = u8::try_from(traffic_class)?;
        }
    }
    Ok(Outcome {
        fates,
        qdiscs: serde_json::from_str(&read("qdiscs")?)?,
        classes: read("classes")?,
    })
}

fn numbers<const N: usize>(line: &str) -> Result<[u64; N]> {
    let words: Vec<u64> = line
        .split(' ')
        .map(str::parse)
        .collect::<Result<_, _>>()
        .with_context(|| format!("'{line}'"))?;
    words
        .try_into()
        .map_err(|_| anyhow::anyhow!("'{line}' has not {N} numbers"))
}

//! Traffic between a LAC and an LNS of ours: iperf3's streams through two TUN devices and a tunnel between
//! them.
//!
//! ```text
//! (LAC) iperf3 -- outside -- headend ==== wire ==== headend -- inside -- iperf3 (LNS)
//! ```

use super::{SOON, number_after};
use crate::headend::Headend;
use crate::net::Namespace;
use crate::process::{Process, until};
use crate::runner::Bench;
use crate::subscribers::{
    BEYOND, address, client_settings, lns_settings, move_in, ping, ping_answered, private_file,
    users,
};
use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// Bytes per TCP connection; rate and duration of each UDP stream.
const TCP_OCTETS: u64 = 20_000_000;
const UDP_BPS: u64 = 10_000_000;
const UDP_S: u64 = 2;

/// TCP segments that may be retransmitted, of about 14,000: on a busy processor TCP's timer occasionally
/// expires.
const AGAIN_MAX: u64 = 50;

/// Tolerated loss of a UDP stream in percent: the wire loses nothing, but a busy machine's sockets may.
const LOST_MAX: f64 = 1.0;

/// TCP and UDP in both directions without loss, and packets that are too large.
pub(crate) fn carries_iperf3(bench: &Bench<'_>) -> Result<()> {
    let (lns, _lac) = carries(bench, 1, "")?;
    lns.stop()
}

/// The same on two cores, over which sessions are spread by their ids; the counters of both include every
/// packet.
pub(crate) fn carries_iperf3_on_two_cores(bench: &Bench<'_>) -> Result<()> {
    let (lns, lac) = carries(bench, 8, "[event]\nshards = 2\n")?;
    let mut expected = [0; 2];
    let rows = lns.all_on_line(8)?;
    for row in &rows {
        let session = row["session"].as_u64().context("a session's id")?;
        let packets = row["packets_in"].as_u64().unwrap_or(0);
        expected[(session % 2) as usize] += packets;
    }
    let shards = lns.show(&["event", "shards"])?;
    let passed = |row: &Value| row["packets_in"].as_u64().unwrap_or(0);
    let passed: Vec<u64> = shards.iter().map(passed).collect();
    ensure!(passed.len() == 2, "{shards:?}");
    ensure!(
        passed.iter().sum::<u64>() == expected.iter().sum::<u64>(),
        "{shards:?} of {expected:?}"
    );
    // The first core handles packets that arrive before the second has learned of a subscriber.
    ensure!(
        passed[1] <= expected[1] && passed[1] + 50 > expected[1],
        "{shards:?} of {expected:?}"
    );
    ensure!(
        shards.iter().all(|row| row["left_dropped"] == 0),
        "{shards:?}"
    );
    // A session's final counters include its packets on both cores.
    lac.stop()?;
    for row in &rows {
        let name = row["name"].as_str().context("a name")?;
        let ended = lns.gone(name)?;
        ensure!(ended["packets_in"] == row["packets_in"], "{ended} of {row}");
    }
    lns.stop()
}

fn carries(bench: &Bench<'_>, subscribers: usize, event: &str) -> Result<(Headend, Headend)> {
    private_file(bench, "users.toml", &users(subscribers))?;
    let sections = format!("[users]\nfile = \"users.toml\"\n{event}");
    let lns = Headend::lns(bench, &lns_settings("", "", &sections))?;
    let lac = Headend::lac(bench, &(client_settings() + event))?;
    let (near, far) = (&bench.wire.lac, &bench.wire.lns);
    far.ip(&["address", "add", &format!("{BEYOND}/32"), "dev", "lo"])?;
    let tunnel = lac.dial_tunnel()?;
    lac.dial(&tunnel, subscribers)?;
    for row in lns.all_on_line(subscribers)? {
        let home = address(&row)?;
        move_in(near, &home)?;
        ping_answered(near, BEYOND, &["-c", "3", "-i", "0.2", "-I", &home])?;
    }
    let home = address(&lns.on_line("user1")?)?;
    let mtu = lns.show(&["subscriber", "user1"])?[0]["mtu"]
        .as_u64()
        .context("an MTU")?;

    let handshakes = [
        Handshakes::watch(bench, near, "outside")?,
        Handshakes::watch(bench, far, "inside")?,
    ];
    let mut server = far.command("iperf3");
    server.args(["-s", "-B", BEYOND, "--forceflush"]);
    let mut server = Process::start(server, "iperf3", &bench.directory)?;
    server.wait_for("Server listening", SOON)?;
    let before = discards(&[&lns, &lac])?;
    let streams = [
        (tcp as Stream, false),
        (udp, false),
        (tcp, true),
        (udp, true),
    ];
    for (number, (stream, reverse)) in streams.into_iter().enumerate() {
        // It serves one client at a time, and rejects one that connects too early.
        server.wait_for_lines("Server listening", number + 1, SOON)?;
        stream(bench, &home, reverse)?;
    }
    let after = discards(&[&lns, &lac])?;
    ensure!(before == after, "{before:?} became {after:?}");
    let counted = lns.on_line("user1")?;
    for octets in ["octets_in", "octets_out"] {
        let octets = counted[octets].as_u64().unwrap_or(0);
        ensure!(octets > TCP_OCTETS / 2, "{counted}");
    }
    handshakes
        .into_iter()
        .try_for_each(|one| one.are_clamped(mtu))?;
    let judged = too_large(bench, &home, mtu);
    let counted = lns.verb(&["show", "counters"])?;
    judged.with_context(|| counted)?;
    Ok((lns, lac))
}

/// A check of one iperf3 stream: from the LAC's side to an address beyond the LNS, or with `true` the reverse.
type Stream = fn(&Bench<'_>, &str, bool) -> Result<()>;

fn tcp(bench: &Bench<'_>, home: &str, reverse: bool) -> Result<()> {
    let octets = TCP_OCTETS.to_string();
    let result = iperf3(bench, home, &["-n", &octets], reverse)?;
    let end = &result["end"];
    let received = end["sum_received"]["bytes"].as_u64().unwrap_or(0);
    let again = end["sum_sent"]["retransmits"]
        .as_u64()
        .context("retransmits")?;
    // Data in the kernel's buffers when the sender finishes is still in flight.
    ensure!(
        received >= TCP_OCTETS / 2 && again <= AGAIN_MAX,
        "{received} octets: {end}"
    );
    Ok(())
}

fn udp(bench: &Bench<'_>, home: &str, reverse: bool) -> Result<()> {
    let (rate, seconds) = (UDP_BPS.to_string(), UDP_S.to_string());
    let result = iperf3(
        bench,
        home,
        &["-u", "-b", &rate, "-t", &seconds, "-l", "1200"],
        reverse,
    )?;
    let sum = &result["end"]["sum"];
    let lost = sum["lost_percent"].as_f64().context("lost_percent")?;
    let packets = sum["packets"].as_u64().unwrap_or(0);
    let due = UDP_BPS * UDP_S / 8 / 1200;
    ensure!(
        lost <= LOST_MAX && packets >= due * 9 / 10,
        "of {due} datagrams: {sum}"
    );
    Ok(())
}

/// iperf3's report on a stream from the LAC's side, or with `reverse` to it.
fn iperf3(bench: &Bench<'_>, home: &str, how: &[&str], reverse: bool) -> Result<Value> {
    let mut command = bench.wire.lac.command("iperf3");
    command.args(["-J", "-c", BEYOND, "-B", home]).args(how);
    if reverse {
        command.arg("-R");
    }
    let output = command.output().context("iperf3")?;
    let result: Value = serde_json::from_slice(&output.stdout).context("iperf3's result")?;
    ensure!(
        output.status.success() && result["error"].is_null(),
        "iperf3 {how:?}: {}",
        result["error"]
    );
    Ok(result)
}

/// All discard counters of the data path, by name.
fn discards(ends: &[&Headend]) -> Result<Vec<(String, u64)>> {
    let mut found = Vec::new();
    for end in ends {
        for row in end.show(&["counters"])? {
            let name = row["name"].as_str().unwrap_or_default();
            let counts = name.starts_with("edge_")
                || name.starts_with("discard_data")
                || ["tun_refused", "tun_missing", "udp_send_dropped"].contains(&name);
            // Packets that a kernel sends by itself on a new device have no receiver.
            if counts && name != "edge_no_route" {
                found.push((name.to_owned(), row["value"].as_u64().unwrap_or(0)));
            }
        }
    }
    Ok(found)
}

/// tcpdump on a TUN device, printing the first packets of TCP connections.
struct Handshakes(Process);

impl Handshakes {
    fn watch(bench: &Bench<'_>, namespace: &Namespace, device: &str) -> Result<Handshakes> {
        let mut command = namespace.command("tcpdump");
        command.args(["-Z", "root", "-n", "-l", "-i", device]);
        command.arg("tcp[tcpflags] & tcp-syn != 0 or icmp[icmptype] == icmp-unreach");
        let name = format!("tcpdump-{device}");
        let mut process = Process::start(command, &name, &bench.directory)?;
        process.wait_for("listening on", SOON)?;
        Ok(Handshakes(process))
    }

    /// The MSS is lowered to fit the subscriber when a packet leaves the tunnel; before that it was larger.
    fn are_clamped(self, mtu: u64) -> Result<()> {
        let printed = until(SOON, || {
            let printed = self.0.printed();
            let all = ["Flags [S]", "Flags [S.]"]
                .iter()
                .all(|flags| printed.contains(flags));
            Ok(all.then_some(printed))
        })?;
        let printed = printed.context("no connection was seen")?;
        let mut seen = Vec::new();
        for line in printed.lines().filter(|line| line.contains("[mss ")) {
            let mss = number_after(line, "[mss ")?;
            if !seen.contains(&mss) {
                seen.push(mss);
            }
        }
        seen.sort_unstable();
        ensure!(
            seen == [mtu - 40, 1460],
            "MSS {seen:?} with an MTU of {mtu}"
        );
        Ok(())
    }
}

/// A packet that may be fragmented arrives in fragments; for one that may not, the sender receives an error.
fn too_large(bench: &Bench<'_>, home: &str, mtu: u64) -> Result<()> {
    let (near, far) = (&bench.wire.lac, &bench.wire.lns);
    ping_answered(far, home, &["-c", "3", "-s", "4000", "-M", "dont"])?;
    ping_answered(
        near,
        BEYOND,
        &["-c", "3", "-s", "4000", "-M", "dont", "-I", home],
    )?;
    let whole = (mtu - 28).to_string();
    ping_answered(far, home, &["-c", "2", "-s", &whole, "-M", "do"])?;
    // The edge sends no error to its own address.
    let larger = (mtu - 27).to_string();
    let printed = ping(
        far,
        home,
        &["-c", "2", "-s", &larger, "-M", "do", "-I", BEYOND],
    )?;
    let told = format!("Frag needed and DF set (mtu = {mtu})");
    ensure!(printed.contains(&told), "{told} is not in {printed}");
    Ok(())
}

//! radclient changes a connected subscriber of our LNS (RFC 5176), and puts it into a walled garden.

use super::SOON;
use crate::freeradius::{FreeRadius, Replies, SECRET, coa, disconnect};
use crate::headend::Headend;
use crate::net::Namespace;
use crate::process::{Process, until};
use crate::runner::Bench;
use crate::subscribers::{
    BEYOND, address, client_settings, lns_settings, move_in, ping, ping_answered, private_file,
    radius_settings,
};
use anyhow::{Context, Result, ensure};

const USERS: &str =
    "user1 Cleartext-Password := \"sesame\"\nuser2 Cleartext-Password := \"sesame\"\n";

const FILTERS: &str = "filter closed\nin\n  deny icmp\n  accept ip\n";

const SECTIONS: &str = "\
[filter]
file = \"filters.txt\"
[[garden]]
name = \"unpaid\"
portal = \"http://192.0.2.80/pay\"
[[queue.template]]
name = \"gold\"
rate_down = \"50mbit\"
[[queue.link]]
name = \"access-7\"
down = \"100mbit\"
up = \"100mbit\"
";

/// One LNS with freeradius beside it, and clients of it.
struct Stage {
    server: FreeRadius,
    lns: Headend,
    lac: Headend,
    tunnel: String,
}

fn stage(bench: &Bench<'_>, subscribers: usize) -> Result<Stage> {
    let server = FreeRadius::start(&bench.wire.lns, &bench.directory, USERS, Replies::Proven)?;
    private_file(bench, "filters.txt", FILTERS)?;
    let sections = format!("{SECTIONS}{}", radius_settings());
    let ppp = "interim_on_change = true\n";
    let lns = Headend::lns(bench, &lns_settings(ppp, "", &sections))?;
    let lac = Headend::lac(bench, &client_settings())?;
    let beyond = format!("{BEYOND}/32");
    (bench.wire.lns).ip(&["address", "add", &beyond, "dev", "lo"])?;
    let tunnel = lac.dial_tunnel()?;
    for _ in 0..subscribers {
        lac.dial(&tunnel, 1)?;
    }
    lns.all_on_line(subscribers)?;
    Ok(Stage {
        server,
        lns,
        lac,
        tunnel,
    })
}

/// Sends a CoA-Request, and requires radclient to print `reply`.
fn change(at: &Namespace, attributes: &str, reply: &str) -> Result<()> {
    let printed = coa(at, &format!("{attributes}\n"), SECRET)?;
    let (code, cause) = reply.split_once(' ').unwrap_or((reply, ""));
    ensure!(
        printed.contains(&format!("Received {code}")),
        "{attributes}: {printed}"
    );
    let cause = match cause {
        "" => String::new(),
        cause => format!("Error-Cause = {cause}"),
    };
    ensure!(printed.contains(&cause), "{attributes}: {printed}");
    Ok(())
}

/// Each change is in force at once; what cannot be changed gets the RFC's Error-Cause and changes nothing; rates change
/// 40 times while a ping runs, which loses no packet.
pub(crate) fn changes_a_connected_subscriber(bench: &Bench<'_>) -> Result<()> {
    let Stage {
        server,
        lns,
        lac,
        tunnel,
    } = stage(bench, 2)?;
    let (near, far) = (&bench.wire.lac, &bench.wire.lns);
    let home = address(&lns.on_line("user1")?)?;
    move_in(near, &home)?;
    ping_answered(near, BEYOND, &["-c", "3", "-I", &home])?;

    refuses(far)?;
    ping_answered(near, BEYOND, &["-c", "3", "-I", &home])?;
    changes_the_filter(bench, &lns, &home)?;
    changes_the_rate(bench, &lns, &home)?;
    changes_networks_and_times(far, &server, &lns)?;
    let radius = lns.show(&["radius"])?;
    let totals = radius.last().context("totals")?;
    ensure!(totals["disconnects"]["change_acks"] == 44, "{totals}");
    let refused = &totals["disconnects"]["refused_because"];
    ensure!(
        refused["invalid_value"] == 2 && refused["unavailable"] == 1,
        "{totals}"
    );
    let printed = disconnect(far, "User-Name = \"user1\"\n", SECRET)?;
    ensure!(printed.contains("Received Disconnect-ACK"), "{printed}");
    lns.gone("user1")?;
    lac.verb(&["tunnel", "delete", &tunnel])?;
    lns.stop()
}

/// What cannot be changed is refused with the RFC's Error-Cause.
fn refuses(far: &Namespace) -> Result<()> {
    let nak = [
        (
            "User-Name = \"nobody\", Filter-Id = \"closed\"",
            "Session-Context-Not-Found",
        ),
        (
            "User-Name = \"user1\", Filter-Id = \"open\"",
            "Invalid-Attribute-Value",
        ),
        (
            "User-Name = \"user1\", Framed-Pool = \"home\"",
            "Unsupported-Attribute",
        ),
        ("User-Name = \"user1\"", "Missing-Attribute"),
        (
            "User-Name = \"user1\", NAS-Identifier = \"x\", Filter-Id = \"closed\"",
            "NAS-Identification-Mismatch",
        ),
        (
            "User-Name = \"user1\", Service-Type = Authorize-Only, State = 0x01",
            "Unsupported-Service",
        ),
        (
            "User-Name = \"user1\", Filter-Id = \"closed\", Mikrotik-Rate-Limit = \"200M\", Filter-Id += \"garden:none\", \
             Cisco-AVPair = \"ip:sub-qos-policy-out=silver\"",
            "Invalid-Attribute-Value",
        ),
    ];
    for (attributes, cause) in nak {
        change(far, attributes, &format!("CoA-NAK {cause}"))?;
    }
    Ok(())
}

/// A filter and a garden apply to the next packet, and the file of filters to those who have one.
fn changes_the_filter(bench: &Bench<'_>, lns: &Headend, home: &str) -> Result<()> {
    let (near, far) = (&bench.wire.lac, &bench.wire.lns);
    let filter = format!("Framed-IP-Address = {home}, Filter-Id = \"closed\"");
    change(far, &filter, "CoA-ACK")?;
    let printed = ping(near, BEYOND, &["-c", "3", "-I", home])?;
    ensure!(printed.contains("100% packet loss"), "{printed}");
    let account = lns.show(&["subscriber", "user1"])?[0]["account"].clone();
    let account = account.as_str().context("an account")?.to_owned();
    lns.verb(&["session", "set", &account, "--garden", "unpaid"])?;
    let off = format!("Acct-Session-Id = \"{account}\", Filter-Id = \"garden:none\"");
    change(far, &off, "CoA-ACK")?;
    private_file(
        bench,
        "filters.txt",
        &FILTERS.replace("deny icmp", "accept icmp"),
    )?;
    lns.verb(&["reload"])?;
    ping_answered(near, BEYOND, &["-c", "3", "-I", home])?;

    Ok(())
}

/// 40 changes of the rate lose no packet of a ping, and reorder none.
fn changes_the_rate(bench: &Bench<'_>, lns: &Headend, home: &str) -> Result<()> {
    let (near, far) = (&bench.wire.lac, &bench.wire.lns);
    let mut pings = near.command("ping");
    pings.args(["-n", "-i", "0.01", "-c", "400", "-I", home, BEYOND]);
    let mut pings = Process::start(pings, "pings", &bench.directory)?;
    for number in 0..40 {
        let rate = 5 + number % 7 * 5;
        let rate = format!("User-Name = \"user1\", Mikrotik-Rate-Limit = \"{rate}M/{rate}M\"");
        change(far, &rate, "CoA-ACK")?;
    }
    pings.wait_for_end(SOON)?;
    let printed = pings.printed();
    ensure!(printed.contains(" 0% packet loss"), "{printed}");
    let replies = printed
        .lines()
        .filter_map(|line| line.split_once("icmp_seq="));
    let numbers: Vec<u32> = replies
        .filter_map(|(_, rest)| rest.split(' ').next()?.parse().ok())
        .collect();
    ensure!(numbers.is_sorted() && numbers.len() == 400, "{printed}");
    let row = lns.show(&["subscriber", "user1"])?.remove(0);
    ensure!(row["queue"]["rate_down_bps"] == 25_000_000, "{row}");

    Ok(())
}

/// Networks are given and refused, and the longest session is shortened until it is over.
fn changes_networks_and_times(far: &Namespace, server: &FreeRadius, lns: &Headend) -> Result<()> {
    let routes =
        "User-Name = \"user1\", Framed-Route = \"10.77.0.0/16 0.0.0.0 1\", Class = 0x6e6577";
    change(far, routes, "CoA-ACK")?;
    let taken = "User-Name = \"user2\", Framed-Route = \"10.77.0.0/16\"";
    change(far, taken, "CoA-NAK Resources-Unavailable")?;
    let interim = until(SOON, || {
        let records = server.records();
        let mut of_change = records
            .into_iter()
            .filter(|one| one.status() == "Interim-Update");
        Ok(of_change.find(|one| one.get("Class") == "0x6e6577"))
    })?;
    interim.context("no Interim-Update with the new Class")?;
    change(far, "User-Name = \"user2\", Session-Timeout = 1", "CoA-ACK")?;
    let ended = lns.gone("user2")?;
    ensure!(
        ended["reason"]
            .as_str()
            .is_some_and(|text| text.contains("Session-Timeout")),
        "{ended}"
    );
    Ok(())
}

/// curl behind the client gets the redirect from the kernel's own TCP; without the garden it reaches the host itself.
pub(crate) fn shows_the_portal(bench: &Bench<'_>) -> Result<()> {
    let stage = stage(bench, 1)?;
    let lns = &stage.lns;
    let (near, far) = (&bench.wire.lac, &bench.wire.lns);
    let home = address(&lns.on_line("user1")?)?;
    move_in(near, &home)?;
    let web = |scheme: &str| -> Result<(Option<i32>, String)> {
        let output = near
            .command("curl")
            .args(["-s", "-i", "--max-time", "5", "--interface", &home])
            .arg(format!("{scheme}://{BEYOND}/index.html"))
            .output()
            .context("curl")?;
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok((output.status.code(), printed))
    };
    // Nobody listens there: its own kernel refuses the connection, which is curl's status 7.
    let (status, printed) = web("http")?;
    ensure!(status == Some(7), "{status:?} {printed}");
    change(
        far,
        "User-Name = \"user1\", Filter-Id = \"garden:unpaid\"",
        "CoA-ACK",
    )?;
    for _ in 0..20 {
        let (status, printed) = web("http")?;
        ensure!(status == Some(0), "{status:?} {printed}");
        ensure!(printed.starts_with("HTTP/1.1 302 Found\r\n"), "{printed}");
        ensure!(
            printed.contains("\r\nLocation: http://192.0.2.80/pay\r\n"),
            "{printed}"
        );
    }
    let (status, printed) = web("https")?;
    ensure!(status == Some(7), "{status:?} {printed}");
    let printed = ping(near, BEYOND, &["-c", "3", "-I", &home])?;
    ensure!(
        printed.contains("100% packet loss") && printed.contains("Packet filtered"),
        "{printed}"
    );
    lns.verb(&["session", "set", "user1", "--garden", "none"])?;
    ping_answered(near, BEYOND, &["-c", "3", "-I", &home])?;
    stage.lns.stop()
}

//! Debian's l2tpns in the LNS's place. It asks a RADIUS server in its namespace, and writes each packet of a subscriber
//! to its TUN device.

use std::io;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::place::{LNS, Place};
use crate::harness::Bench;
use crate::harness::run::find_program;
use crate::harness::server::Server;
use crate::subscribers::radius::{Accepts, Responder, SECRET};

/// Its TUN device.
pub(super) const TUN: &str = "tun0";

/// The path of its tables, which is compiled into it.
const TABLES: &str = "/etc/l2tpns";

/// Start-up limit; l2tpns waits for other members of its cluster before it serves.
const START_MAX: Duration = Duration::from_secs(20);

/// A running l2tpns, and the RADIUS server that it asks.
pub(super) struct L2tpns {
    pub(super) server: Server,
    _responder: Responder,
}

/// Starts it in the LNS's namespace, and waits until it serves.
///
/// # Errors
/// It is not installed, or does not start.
pub(super) fn start(bench: &Bench, place: &Place) -> Result<L2tpns> {
    let program = find_program("l2tpns").context("l2tpns is not installed")?;
    let responder = place.lns.run(|| Responder::start(Accepts::Unsigned))??;
    let tables = bench.directory.path("etc-l2tpns");
    std::fs::create_dir_all(&tables)?;
    std::fs::write(tables.join("users"), "")?;
    std::fs::write(tables.join("ip_pool"), "10.66.0.0/24\n")?;
    let file = bench.directory.path("l2tpns.conf");
    let log = bench.directory.path("l2tpns.out");
    let text = format!(
        "set debug 3\nset log_file \"{}\"\nset pid_file \"{}\"\nset hostname \"l2tpns\"\n\
         set bind_address {}\nset cli_bind_address 127.0.0.1\nset peer_address 10.77.0.1\n\
         set primary_radius 127.0.0.1\nset primary_radius_port {}\nset radius_secret \"{SECRET}\"\n\
         set radius_authtypes \"chap\"\nset cluster_interface \"wire\"\nset cluster_hb_interval 2\n\
         set cluster_hb_timeout 19\n",
        log.display(),
        bench.directory.path("l2tpns.pid").display(),
        LNS.ip(),
        responder.addresses[0].port(),
    );
    std::fs::write(&file, text)?;
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c"]);
    command.arg("mount --bind \"$0\" \"$1\" && exec \"$2\" -c \"$3\"");
    command.arg(&tables).arg(TABLES).arg(program).arg(&file);
    place.lns.command(&mut command)?;
    let mut running = bench.spawn("l2tpns", command)?;
    // Its output is read and dropped, so that a full pipe does not stop it.
    if let Some(mut out) = running.stdout.take() {
        std::thread::spawn(move || io::copy(&mut out, &mut io::sink()));
    }
    let started = Instant::now();
    while !std::fs::read_to_string(&log).is_ok_and(|text| text.contains("declaring myself")) {
        running.check()?;
        if started.elapsed() > START_MAX {
            bail!("l2tpns does not serve: {}", running.log());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let addresses = vec![LNS];
    let server = Server { running, addresses };
    Ok(L2tpns {
        server,
        _responder: responder,
    })
}

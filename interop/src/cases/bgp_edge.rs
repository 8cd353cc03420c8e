//! The edge's routes: subscribers' addresses are announced to FRR and withdrawn; BIRD's routes are in the
//! kernel while the session lasts.

use super::bgp::{SOON, settings};
use crate::bgp::{Kind, OUR_ASN, Router, Setup, THEIR_ASN};
use crate::headend::Headend;
use crate::net::{LAC, Namespace};
use crate::process::until;
use crate::runner::Bench;
use crate::subscribers::{address, client_settings, lns_settings, private_file, users};
use anyhow::{Context, Result, ensure};

/// The addresses of two subscribers, and then an aggregate instead of them.
pub(crate) fn announces_subscribers(bench: &Bench<'_>) -> Result<()> {
    private_file(bench, "users.toml", &users(2))?;
    let peer = Router::start(bench, Kind::Frr, &Setup::default())?;
    for aggregates in ["", "aggregates = [\"10.64.0.0/16\"]\n"] {
        let bgp = format!(
            "[users]\nfile = \"users.toml\"\n[bgp]\nasn = {OUR_ASN}\nrouter_id = \"10.9.0.2\"\nlisten = []\nhold_time_s = 3\n\
             announce = [\"subscribers\"]\n{aggregates}import = \"accept\"\nexport = \"accept\"\nconnect_retry_s = 1\n\
             [[bgp.neighbor]]\naddress = \"{LAC}\"\nremote_asn = {THEIR_ASN}\n"
        );
        let lns = Headend::lns(bench, &lns_settings("", "", &bgp))?;
        let lac = Headend::lac(bench, &client_settings())?;
        lns.established(LAC)?;
        let tunnel = lac.dial_tunnel()?;
        lac.dial(&tunnel, 2)?;
        let mut prefixes = Vec::new();
        for name in ["user1", "user2"] {
            prefixes.push(format!("{}/32", address(&lns.on_line(name)?)?));
        }
        let show = |prefix: &str| format!("show bgp ipv4 unicast {prefix}");
        let (is, is_not) = (["4200000000"], "% Network not in table");
        if aggregates.is_empty() {
            for prefix in &prefixes {
                peer.wait_for(&show(prefix), &is, SOON)?;
            }
            lns.verb(&["session", "drop", "user1"])?;
            peer.wait_for(&show(&prefixes[0]), &[is_not], SOON)?;
            peer.wait_for(&show(&prefixes[1]), &is, SOON)?;
        } else {
            peer.wait_for(&show("10.64.0.0/16"), &is, SOON)?;
            let printed = peer.ask("show bgp ipv4 unicast")?;
            ensure!(
                !printed.contains("/32"),
                "more than the aggregate: {printed}"
            );
            lns.verb(&["session", "drop", "user1"])?;
            lns.gone("user1")?;
            peer.wait_for(&show("10.64.0.0/16"), &is, SOON)?;
        }
        lns.verb(&["session", "drop", "user2"])?;
        let last = if aggregates.is_empty() {
            &prefixes[1]
        } else {
            "10.64.0.0/16"
        };
        peer.wait_for(&show(last), &[is_not], SOON)?;
        lac.stop()?;
        lns.stop()?;
    }
    Ok(())
}

/// BIRD's two routes, one of each family.
pub(crate) fn tells_the_kernel(bench: &Bench<'_>) -> Result<()> {
    let peer = Router::start(bench, Kind::Bird, &Setup::default())?;
    let keys = "install = true\ninstall_metric = 77\n";
    let us = Headend::speaker(bench, &settings(keys, "", ""))?;
    us.established(LAC)?;
    let lns = &bench.wire.lns;
    kernel_has(
        lns,
        "-4",
        &["198.51.100.0/24 via 10.9.0.1 dev wire", "metric 77"],
    )?;
    kernel_has(
        lns,
        "-6",
        &["2001:db8:1::/48 via fd09::1 dev wire", "metric 77"],
    )?;
    peer.ask("disable own4")?;
    kernel_has(lns, "-4", &[])?;
    peer.ask("enable own4")?;
    kernel_has(lns, "-4", &["198.51.100.0/24"])?;
    // The routes are removed when the session ends,
    peer.ask("disable headend")?;
    kernel_has(lns, "-4", &[])?;
    kernel_has(lns, "-6", &[])?;
    peer.ask("enable headend")?;
    kernel_has(lns, "-6", &["2001:db8:1::/48"])?;
    // and when the daemon stops.
    us.stop()?;
    kernel_has(lns, "-4", &[])?;
    kernel_has(lns, "-6", &[])
}

/// Waits until the kernel's BGP routes contain all of `words`; without words, until there are none.
fn kernel_has(namespace: &Namespace, family: &str, words: &[&str]) -> Result<()> {
    let mut last = String::new();
    until(SOON, || {
        let mut command = namespace.command("ip");
        let output = command
            .args([family, "route", "show", "proto", "bgp"])
            .output()?;
        last = String::from_utf8_lossy(&output.stdout).into_owned();
        let is_so =
            words.iter().all(|word| last.contains(word)) && words.is_empty() == last.is_empty();
        Ok(is_so.then_some(()))
    })?
    .with_context(|| format!("the kernel's routes have not {words:?}: {last}"))
}

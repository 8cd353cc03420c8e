//! Tests headend against other projects' software: for L2TP, Debian's xl2tpd and l2tpns, Katalix's Go module,
//! and tshark's decoder; for BGP, Debian's FRR, BIRD 2 and GoBGP ([`bgp`]); for the capture analyser, tshark.
//!
//! A third kind of peer is the Linux kernel itself: guests with Debian's kernel, in virtual time ([`kernel`]),
//! whose queues, classifier and conntrack get the same packets as ours ([`translation`] for conntrack).
//!
//! `cargo xtask` starts the program, which restarts itself in new mount, network and process namespaces
//! ([`sandbox`]), so that nothing it starts outlives it or reaches the machine's own network. Each test
//! ([`cases`]) has two network namespaces joined by a virtual wire ([`net`]). It starts a peer in one and
//! headend in the other, and checks the peer's output and what headend shows.
//!
//! Peers implement RFC 2661. No other implementation of RFC 3931's control connection is available; tshark's
//! decoder checks its bytes instead.
#![forbid(unsafe_code)]

mod bgp;
mod capture;
mod cases;
mod freeradius;
mod golac;
mod headend;
mod kernel;
mod l2tpns;
mod net;
mod paths;
mod process;
mod runner;
mod sandbox;
mod subscribers;
mod translation;
mod tshark;
mod xl2tpd;

use anyhow::{Result, bail};
use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "interop --headend BINARY --root WORKSPACE --kernel DIRECTORY --prometheus DIRECTORY \
     --page FILE [--accel-ppp DIRECTORY] [--bngblaster BINARY] [--measure] [NAME ...]";

/// The command line's options.
struct Options {
    /// The headend to test.
    headend: PathBuf,
    /// The workspace's root.
    root: PathBuf,
    /// An unpacked kernel package, for guests.
    kernel: PathBuf,
    /// Unpacked packages with Prometheus and its Python client.
    prometheus: PathBuf,
    /// The web page of the analyser.
    page: PathBuf,
    /// accel-ppp as `cargo xtask interop --accel-ppp` built it.
    accel_ppp: Option<PathBuf>,
    /// BNG Blaster's program.
    bngblaster: Option<PathBuf>,
    /// Whether to measure instead of testing.
    is_measured: bool,
    /// Substrings of the names of the tests to run; none means all.
    names: Vec<String>,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .as_slice()
    {
        // Internal subcommands, run inside the namespaces or a guest.
        ["cli", address, command] => l2tpns::talk(address, command).map(|()| true),
        ["play", manner, address, asn, file] => {
            bgp::player::play(manner, address, asn, file).map(|()| true)
        }
        ["send", schedule, log] => kernel::probe::send(schedule, log).map(|()| true),
        ["listen", log, seconds] => kernel::probe::listen(log, seconds).map(|()| true),
        ["why-send", congestion, work] => paths::send(congestion, work).map(|()| true),
        ["why-receive", address, buffer, work] => {
            paths::receive(address, buffer, work).map(|()| true)
        }
        ["why-judge", headend, directory, seed] => cases::judge_again(headend, directory, seed),
        ["why-watch", log, stop] => paths::watch(log, stop).map(|()| true),
        ["translate", schedule, file] => translation::play(schedule, file).map(|()| true),
        ["flood", side, count, sample] => translation::flood(side, count, sample).map(|each| {
            println!("{each:.1}");
            true
        }),
        ["inside", work, rest @ ..] => {
            options(rest).and_then(|options| sandbox::inside(work.as_ref(), &options))
        }
        rest => options(rest).and_then(|options| sandbox::outside(&options, &arguments)),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("interop: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn options(words: &[&str]) -> Result<Options> {
    let (mut headend, mut root, mut kernel, mut prometheus) = (None, None, None, None);
    let (mut page, mut accel_ppp, mut bngblaster, mut is_measured) = (None, None, None, false);
    let mut names = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "--headend" => headend = words.next().map(PathBuf::from),
            "--root" => root = words.next().map(PathBuf::from),
            "--kernel" => kernel = words.next().map(PathBuf::from),
            "--prometheus" => prometheus = words.next().map(PathBuf::from),
            "--page" => page = words.next().map(PathBuf::from),
            "--accel-ppp" => accel_ppp = words.next().map(PathBuf::from),
            "--bngblaster" => bngblaster = words.next().map(PathBuf::from),
            "--measure" => is_measured = true,
            flag if flag.starts_with('-') => bail!("{flag} is no flag of ours\n{USAGE}"),
            name => names.push(name.to_owned()),
        }
    }
    let (Some(headend), Some(root), Some(kernel), Some(prometheus), Some(page)) =
        (headend, root, kernel, prometheus, page)
    else {
        bail!("{USAGE}")
    };
    Ok(Options {
        headend: std::path::absolute(headend)?,
        root: std::path::absolute(root)?,
        kernel: std::path::absolute(kernel)?,
        prometheus: std::path::absolute(prometheus)?,
        page: std::path::absolute(page)?,
        accel_ppp: accel_ppp.map(std::path::absolute).transpose()?,
        bngblaster: bngblaster.map(std::path::absolute).transpose()?,
        is_measured,
        names,
    })
}

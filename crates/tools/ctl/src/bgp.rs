//! `headend show bgp ...` and `headend bgp ...`: routes, and who they come from.

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

use cli::Socket;
use control::request::{BgpNeighbors, BgpPeer, BgpRoutes, BgpVerb, BgpWhose, Do};
use control::rows;

/// What is shown.
#[derive(Debug, Subcommand)]
pub(super) enum Show {
    /// The router and its peers, a line each
    Summary(BgpWhose),
    /// All about the peers, or one
    #[command(visible_alias = "neighbours")]
    Neighbors(BgpNeighbors),
    /// Routes: all, those of a prefix with the reason why the best is the best, or those of a peer
    #[command(visible_alias = "routes", after_help = ROUTE_HELP)]
    Route(BgpRoutes),
    /// What the tables hold, and how much memory they take
    Rib(BgpWhose),
    /// What happened of late: states, notifications, malformed messages
    Events(BgpNeighbors),
}

const ROUTE_HELP: &str = "\
Before each route: * it may be used, > it is the best, i it came from within our AS, S its peer restarts.

Examples:
  headend show bgp route                             # all routes
  headend show bgp route 198.51.100.0/24             # all about one prefix, and why its best is the best
  headend show bgp route 198.51.100.7                # the longest prefix that it is in
  headend show bgp route 198.51.100.0/22 --longer
  headend show bgp route --received 192.0.2.7
  headend show bgp route --advertised upstream --json";

impl Show {
    /// What was typed, as a request.
    pub(super) fn request(&self) -> Do {
        match self {
            Show::Summary(whose) => Do::ShowBgpSummary(whose.clone()),
            Show::Neighbors(which) => Do::ShowBgpNeighbors(which.clone()),
            Show::Route(which) => Do::ShowBgpRoute(which.clone()),
            Show::Rib(whose) => Do::ShowBgpRib(whose.clone()),
            Show::Events(which) => Do::ShowBgpEvents(which.clone()),
        }
    }

    /// The schema whose headings are printed even if there are no rows.
    pub(super) fn schema(&self) -> &'static str {
        match self {
            Show::Summary(_) => rows::BgpNeighbor::SCHEMA,
            Show::Neighbors(_) => rows::BgpNeighborDetail::SCHEMA,
            Show::Route(which) if which.prefix.is_some() && !which.longer => rows::BgpPath::SCHEMA,
            Show::Route(_) => rows::BgpRoute::SCHEMA,
            Show::Rib(_) => rows::BgpRib::SCHEMA,
            Show::Events(_) => rows::BgpEvent::SCHEMA,
        }
    }
}

/// Act on peers of the BGP speaker.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    socket: Socket,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Start a peer that was stopped
    Start(Peer),
    /// Stop a peer
    Stop(Told),
    /// End a peer's session, and start it again
    Reset(Told),
    /// Ask a peer for its routes again, or send it ours
    Refresh {
        #[command(flatten)]
        peer: Peer,
        /// Send ours again instead
        #[arg(long)]
        out: bool,
    },
}

#[derive(Debug, clap::Args)]
struct Peer {
    /// Its address or name, or all
    peer: String,
    /// A router of an emulation; a daemon has one only
    #[arg(long, value_name = "NAME")]
    router: Option<String>,
}

#[derive(Debug, clap::Args)]
struct Told {
    #[command(flatten)]
    peer: Peer,
    /// A line for the peer's operator
    #[arg(long, value_name = "TEXT", default_value = "")]
    message: String,
}

/// Asks for what was typed.
pub fn run(args: &Args) -> Result<ExitCode> {
    let (peer, verb, text) = match &args.verb {
        Verb::Start(peer) => (peer, BgpVerb::Start, ""),
        Verb::Stop(told) => (&told.peer, BgpVerb::Stop, told.message.as_str()),
        Verb::Reset(told) => (&told.peer, BgpVerb::Reset, told.message.as_str()),
        Verb::Refresh { peer, out: false } => (peer, BgpVerb::RefreshIn, ""),
        Verb::Refresh { peer, out: true } => (peer, BgpVerb::RefreshOut, ""),
    };
    let request = Do::BgpPeer(BgpPeer {
        peer: peer.peer.clone(),
        verb,
        text: text.to_owned(),
        router: peer.router.clone(),
    });
    let mut client = args.socket.connect()?;
    let peers = client.call(&request)?;
    let many = if peers == 1 { "peer" } else { "peers" };
    println!("{peers} {many}");
    Ok(ExitCode::SUCCESS)
}

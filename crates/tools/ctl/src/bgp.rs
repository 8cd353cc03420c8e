//! `headend show bgp ...`: peers and routes; `headend bgp ...`: start, stop and reset peers.

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

use cli::Socket;
use control::request::{BgpNeighbors, BgpPeer, BgpRoutes, BgpVerb, BgpWhose, Do};
use control::rows;

/// A verb of `headend show bgp`.
#[derive(Debug, Subcommand)]
pub(super) enum Show {
    /// The router, and one line for each peer
    Summary(BgpWhose),
    /// Everything about all peers, or about one
    #[command(visible_alias = "neighbours")]
    Neighbors(BgpNeighbors),
    /// Routes: all, those of a prefix with the reason why the best route won, or those of a peer
    #[command(visible_alias = "routes", after_help = ROUTE_HELP)]
    Route(BgpRoutes),
    /// Size and memory of the tables
    Rib(BgpWhose),
    /// Recent events: state changes, notifications, malformed messages
    Events(BgpNeighbors),
}

const ROUTE_HELP: &str = "\
Before each route: * usable, > best, i internal (from our own AS), S stale (the peer restarts).

Examples:
  headend show bgp route                             # all routes
  headend show bgp route 198.51.100.0/24             # one prefix, and why its best route won
  headend show bgp route 198.51.100.7                # the longest matching prefix
  headend show bgp route 198.51.100.0/22 --longer
  headend show bgp route --received 192.0.2.7
  headend show bgp route --advertised upstream --json";

impl Show {
    /// The request of this command.
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

/// Start, stop, reset and refresh BGP peers.
#[derive(Debug, clap::Args)]
pub struct BgpArgs {
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
    Stop(Stopped),
    /// Close a peer's session and open it again
    Reset(Stopped),
    /// Request a peer's routes again, or send ours again
    Refresh {
        #[command(flatten)]
        peer: Peer,
        /// Send our routes to the peer again instead
        #[arg(long)]
        out: bool,
    },
}

#[derive(Debug, clap::Args)]
struct Peer {
    /// The peer's address or name, or all
    peer: String,
    /// A router of an emulation; a daemon has one router without a name
    #[arg(long, value_name = "NAME")]
    router: Option<String>,
}

#[derive(Debug, clap::Args)]
struct Stopped {
    #[command(flatten)]
    peer: Peer,
    /// A message to the peer's operator (RFC 9003)
    #[arg(long, value_name = "TEXT", default_value = "")]
    message: String,
}

/// Sends the request.
pub fn run(args: &BgpArgs) -> Result<ExitCode> {
    let (peer, verb, text) = match &args.verb {
        Verb::Start(peer) => (peer, BgpVerb::Start, ""),
        Verb::Stop(args) => (&args.peer, BgpVerb::Stop, args.message.as_str()),
        Verb::Reset(args) => (&args.peer, BgpVerb::Reset, args.message.as_str()),
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

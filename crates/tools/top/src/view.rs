//! The views, in the order of their keys.

/// What the screen shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum View {
    /// The whole daemon
    Overview,
    /// Subscribers
    Subscribers,
    /// The event loop
    Loop,
    /// BGP peers
    Peers,
    /// The queues of `headend qos run`
    Queues,
}

impl View {
    /// Every view, in the order of its key.
    pub(crate) const ALL: [View; 5] = [
        View::Overview,
        View::Subscribers,
        View::Loop,
        View::Peers,
        View::Queues,
    ];

    /// The title.
    pub(crate) fn title(self) -> &'static str {
        match self {
            View::Overview => "Overview",
            View::Subscribers => "Subscribers",
            View::Loop => "Loop",
            View::Peers => "Peers",
            View::Queues => "Queues",
        }
    }
}

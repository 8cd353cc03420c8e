//! The rows of the published table, and its figures.

use serde::Serialize;

/// Host A's load on the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Load {
    /// Nothing.
    None,
    /// Three bulk TCP connections, as `scp` three times.
    Bulk,
    /// 8.2 Mbit/s of UDP in datagrams of 1,400 bytes.
    Flood,
}

/// A row: a load, without the policy or with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct Row {
    /// The published number, 1 to 6.
    pub number: u8,
    /// A's load.
    pub load: Load,
    /// Whether the gateway shapes.
    pub shaped: bool,
}

impl Row {
    /// The six rows, in the published order.
    pub const ALL: [Row; 6] = [
        row(1, Load::None, false),
        row(2, Load::None, true),
        row(3, Load::Bulk, false),
        row(4, Load::Bulk, true),
        row(5, Load::Flood, false),
        row(6, Load::Flood, true),
    ];

    /// The published figures of this row.
    #[must_use]
    pub fn published(&self) -> &'static Published {
        &PUBLISHED[usize::from(self.number.clamp(1, 6)) - 1]
    }
}

const fn row(number: u8, load: Load, shaped: bool) -> Row {
    Row {
        number,
        load,
        shaped,
    }
}

/// Bulk connections of A in rows 3 and 4.
pub const BULK_CONNECTIONS: usize = 3;

/// The flood's rate in bits of UDP payload a second. Published as 8.2 Mbit/s.
pub const FLOOD_BPS: u64 = 8_200_000;

/// A published row: Dan Siemon's blog, 2009 to 2014.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Published {
    /// Loss of the 200 kbit/s stream, in per cent.
    pub loss_percent: f64,
    /// Its jitter in milliseconds.
    pub jitter_ms: f64,
    /// Mean page load in milliseconds; `None`: no page within 120 seconds.
    pub page_ms: Option<f64>,
    /// B's share of the link with one `scp` against A's load; `None`: not published.
    pub share: Option<f64>,
}

const PUBLISHED: [Published; 6] = [
    published(0.0, 0.229, Some(490.0), None),
    published(0.0, 0.197, Some(381.0), None),
    published(0.6, 2.6, Some(1_507.0), Some(0.25)),
    published(0.0, 0.496, Some(417.0), Some(0.5)),
    published(69.0, 1.58, None, Some(0.0)),
    published(0.0, 0.804, Some(381.0), Some(0.5)),
];

const fn published(
    loss_percent: f64,
    jitter_ms: f64,
    page_ms: Option<f64>,
    share: Option<f64>,
) -> Published {
    Published {
        loss_percent,
        jitter_ms,
        page_ms,
        share,
    }
}

/// The figures of a row, measured or computed.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Result {
    /// Loss of the 200 kbit/s stream, in per cent.
    pub loss_percent: f64,
    /// Its jitter in milliseconds, RFC 3550 6.4.1.
    pub jitter_ms: f64,
    /// The time of each page load, in milliseconds.
    pub page_ms: Vec<f64>,
    /// Number of page loads that failed.
    pub page_failures: u32,
    /// The time of each page load in a browser, in milliseconds, from the start of the navigation to
    /// the load event. The first load of each browser process is left out.
    pub browser_ms: Vec<f64>,
    /// The part of each of these loads that waited for the network: from the first connection
    /// attempt to the last byte.
    pub browser_network_ms: Vec<f64>,
    /// Page loads that the browser did not finish.
    pub browser_failures: u32,
    /// B's pings, as pairs of sending time in seconds and round-trip time in milliseconds; `None`
    /// without a reply.
    pub pings: Vec<(f64, Option<f64>)>,
    /// B's share of the bulk data through the link, with one connection against A's load.
    pub share: Option<f64>,
    /// Total throughput while B's share was measured, in bits of payload per second.
    pub goodput_bps: Option<f64>,
    /// Whether it was stopped early, so that the figures cover only a part.
    pub partial: bool,
}

impl Result {
    /// The mean page load in milliseconds; `None` when no load was finished.
    #[must_use]
    pub fn page_mean_ms(&self) -> Option<f64> {
        mean(&self.page_ms)
    }

    /// The median of the browser's page loads in milliseconds; `None` when no load was finished.
    #[must_use]
    pub fn browser_median_ms(&self) -> Option<f64> {
        median(&self.browser_ms)
    }

    /// The round-trip time that a share `p` of the answered pings did not exceed.
    #[must_use]
    pub fn ping_percentile_ms(&self, p: f64) -> Option<f64> {
        let answered: Vec<f64> = self.pings.iter().filter_map(|ping| ping.1).collect();
        percentile(&answered, p)
    }

    /// Pings without reply, in per cent.
    #[must_use]
    pub fn ping_loss_percent(&self) -> f64 {
        let lost = self.pings.iter().filter(|ping| ping.1.is_none()).count();
        100.0 * lost as f64 / self.pings.len().max(1) as f64
    }
}

/// The mean; `None` for an empty slice.
#[must_use]
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The value that a share `p` of the values does not exceed; `None` for an empty slice.
#[must_use]
pub fn percentile(values: &[f64], p: f64) -> Option<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    // Small and not negative: the cast is exact.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let index = (p.clamp(0.0, 1.0) * last as f64).ceil() as usize;
    values.get(index).copied()
}

/// The median; `None` for an empty slice.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let (low, high) = (
        values.get(values.len().saturating_sub(1) / 2)?,
        values.get(values.len() / 2)?,
    );
    Some(low.midpoint(*high))
}

/// Jain's fairness index: 1 if all shares are equal, 1/n if one has everything.
#[must_use]
pub fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    if squares == 0.0 {
        return 1.0;
    }
    sum * sum / (shares.len() as f64 * squares)
}

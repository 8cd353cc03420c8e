//! Families to text: the Prometheus text format 0.0.4 and OpenMetrics 1.0.
//!
//! The two differ little: in OpenMetrics, the name of a counter's family has no `_total`, units are declared, quotes are
//! escaped in help texts, and the text has an end.

use std::fmt::{self, Display, Write};

use crate::parse;

use super::rows::{Families, Family, Measure, Sample, Type};

/// A text format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// Prometheus text 0.0.4.
    Prometheus,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

impl Format {
    /// The format that an `Accept` header asks for: the better liked of those that it names, or Prometheus.
    pub(super) fn of(accept: &str) -> Self {
        if parse::prefers_open_metrics(accept) {
            Self::OpenMetrics
        } else {
            Self::Prometheus
        }
    }

    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

impl Families {
    /// All families as text.
    pub(super) fn text(&self, format: Format) -> String {
        let mut text = String::new();
        for family in &self.families {
            write_family(&mut text, family, format).expect("a string takes all text");
        }
        if format == Format::OpenMetrics {
            text.push_str("# EOF\n");
        }
        text
    }
}

fn write_family(text: &mut String, family: &Family, format: Format) -> fmt::Result {
    let name = &family.name;
    let total = if family.kind == Type::Counter {
        "_total"
    } else {
        ""
    };
    let declared = match format {
        Format::Prometheus => format!("{name}{total}"),
        Format::OpenMetrics => name.clone(),
    };
    let kind = match family.kind {
        Type::Gauge => "gauge",
        Type::Counter => "counter",
        Type::Histogram => "histogram",
    };
    let help = match format {
        Format::Prometheus => family.help.replace('\\', "\\\\").replace('\n', "\\n"),
        Format::OpenMetrics => escaped(&family.help),
    };
    writeln!(text, "# HELP {declared} {help}")?;
    writeln!(text, "# TYPE {declared} {kind}")?;
    if let (Format::OpenMetrics, Some(unit)) = (format, family.unit) {
        writeln!(text, "# UNIT {declared} {unit}")?;
    }
    for sample in &family.samples {
        write_sample(text, &format!("{name}{total}"), sample)?;
    }
    Ok(())
}

fn write_sample(text: &mut String, name: &str, sample: &Sample) -> fmt::Result {
    let labels = &sample.labels;
    match &sample.value {
        Measure::Number(value) => writeln!(text, "{name}{} {value}", Labels(labels, None)),
        Measure::Histogram {
            buckets,
            count,
            sum,
        } => {
            for (bound, count) in buckets {
                let bound = format!("{bound:?}");
                writeln!(
                    text,
                    "{name}_bucket{} {count}",
                    Labels(labels, Some(&bound))
                )?;
            }
            writeln!(
                text,
                "{name}_bucket{} {count}",
                Labels(labels, Some("+Inf"))
            )?;
            writeln!(text, "{name}_sum{} {sum}", Labels(labels, None))?;
            writeln!(text, "{name}_count{} {count}", Labels(labels, None))
        }
    }
}

/// Labels in braces, with the bound of a bucket; nothing if there are none.
struct Labels<'a>(&'a [(String, String)], Option<&'a str>);

impl Display for Labels<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let own = self
            .0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        let all = own.chain(self.1.map(|bound| ("le", bound)));
        let mut before = '{';
        for (name, value) in all {
            write!(f, "{before}{name}=\"{}\"", escaped(value))?;
            before = ',';
        }
        if before == ',' {
            f.write_char('}')
        } else {
            Ok(())
        }
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

//! Parses the values of `--plot`, and writes the files that they name.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use ping::Outcome;

use super::draw::{Charts, Drawn};
use super::files::Target;

/// Pixels per unit of a picture's width of 860 units.
const PNG_SCALE: f64 = 2.0;

/// The format of a plot file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Svg,
    Png,
    Html,
}

/// A requested plot, `[KIND=]FILE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wish {
    /// `None` for a page with all kinds.
    drawn: Option<Drawn>,
    format: Format,
    path: PathBuf,
}

impl Wish {
    /// Parses `[KIND=]FILE`. Without a kind, a picture shows round trips over time and a page shows all kinds.
    ///
    /// # Errors
    /// An unknown kind or suffix.
    pub(super) fn parse(typed: &OsStr) -> Result<Wish> {
        let (kind, path) = match typed.to_str().and_then(|text| text.split_once('=')) {
            // A directory name may contain "=" too.
            Some((kind, path)) if !kind.contains('/') => (Some(kind), Path::new(path)),
            _ => (None, Path::new(typed)),
        };
        let drawn = kind.map(|kind| {
            let found = Drawn::ALL.into_iter().find(|drawn| drawn.name() == kind);
            found.ok_or_else(|| anyhow!("no kind {kind:?}: there are time, line, scatter and cdf"))
        });
        let wish = || -> Result<Wish> {
            let format = format(path)?;
            let drawn = match (drawn.transpose()?, format) {
                (None, Format::Svg | Format::Png) => Some(Drawn::Time),
                (drawn, _) => drawn,
            };
            let path = path.to_owned();
            Ok(Wish {
                drawn,
                format,
                path,
            })
        };
        wish().with_context(|| format!("--plot {}", typed.display()))
    }

    /// Parses all values.
    ///
    /// # Errors
    /// The first invalid value.
    pub(super) fn parse_all(typed: &[std::ffi::OsString]) -> Result<Vec<Wish>> {
        typed.iter().map(|typed| Wish::parse(typed)).collect()
    }
}

fn format(path: &Path) -> Result<Format> {
    let suffix = path.extension().and_then(OsStr::to_str).unwrap_or_default();
    match suffix.to_ascii_lowercase().as_str() {
        "svg" => Ok(Format::Svg),
        "png" if !plot::CAN_WRITE_PNG => bail!(plot::PngError::NotBuilt),
        "png" => Ok(Format::Png),
        "html" | "htm" => Ok(Format::Html),
        _ => bail!("a plot's name ends in .svg, .png or .html"),
    }
}

/// The output files of an experiment, opened before it starts: the result and the plots.
pub(super) struct Files {
    result: Option<Target>,
    plots: Vec<(Wish, Target)>,
}

impl Files {
    /// Opens the files.
    ///
    /// # Errors
    /// The first file that cannot be written.
    pub(super) fn open(result: Option<&Path>, plots: &[Wish]) -> Result<Files> {
        let paths = plots.iter().map(|wish| wish.path.as_path());
        let mut targets = Target::open_all(result.into_iter().chain(paths))?.into_iter();
        Ok(Files {
            result: result.and_then(|_| targets.next()),
            plots: plots.iter().cloned().zip(targets).collect(),
        })
    }

    /// Writes as many of the files as possible: the result, for which `outcomes` has one entry, and the plots of all.
    ///
    /// # Errors
    /// The first file that could not be written.
    pub(super) fn write(self, outcomes: &[(&str, &Outcome)]) -> Result<()> {
        let saved = match (self.result, outcomes) {
            (Some(target), [(_, outcome)]) => super::save::save(target, outcome),
            _ => Ok(()),
        };
        if self.plots.is_empty() {
            return saved;
        }
        let charts = Charts::new(outcomes);
        let drawn = self.plots.into_iter().map(|(wish, target)| {
            let octets = picture(&wish, &charts)
                .with_context(|| format!("cannot draw {}", wish.path.display()))?;
            target.write(|mut file| file.write_all(&octets).map(|()| file))
        });
        // Try every file; report the first error.
        drawn.fold(saved, |all, one| all.and(one))
    }
}

fn picture(wish: &Wish, charts: &Charts<'_>) -> Result<Vec<u8>> {
    let chart = wish.drawn.map(|drawn| charts.chart(drawn));
    Ok(match (wish.format, chart) {
        (Format::Html, Some(chart)) => charts.page([chart]).to_html().into_bytes(),
        (Format::Svg, Some(chart)) => chart.to_svg().into_bytes(),
        (Format::Png, Some(chart)) => chart.to_png(PNG_SCALE)?,
        (_, None) => charts.page(charts.all()).to_html().into_bytes(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Wish> {
        Wish::parse(OsStr::new(text))
    }

    #[test]
    fn a_plot_is_a_kind_and_a_file_whose_name_says_the_format() {
        for (text, drawn, format, path) in [
            ("a.svg", Some(Drawn::Time), Format::Svg, "a.svg"),
            ("a.PNG", Some(Drawn::Time), Format::Png, "a.PNG"),
            ("a.html", None, Format::Html, "a.html"),
            ("cdf=x/a.png", Some(Drawn::Cdf), Format::Png, "x/a.png"),
            ("line=a=b.svg", Some(Drawn::Line), Format::Svg, "a=b.svg"),
            (
                "scatter=a.html",
                Some(Drawn::Scatter),
                Format::Html,
                "a.html",
            ),
            ("time=a.svg", Some(Drawn::Time), Format::Svg, "a.svg"),
            ("./a=b.svg", Some(Drawn::Time), Format::Svg, "./a=b.svg"),
        ] {
            // Without the feature, such a file is refused.
            if cfg!(not(feature = "png")) && format == Format::Png {
                continue;
            }
            let path = PathBuf::from(path);
            let expected = Wish {
                drawn,
                format,
                path,
            };
            assert_eq!(parse(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_drawn_is_refused_with_its_reason() {
        for (text, why) in [
            ("a.jpg", "ends in .svg, .png or .html"),
            ("a", "ends in"),
            ("", "ends in"),
            ("cdf=", "ends in"),
            (".svg", "ends in"),
            ("pie=a.svg", "no kind \"pie\""),
            ("=a.svg", "no kind \"\""),
        ] {
            let error = format!("{:#}", parse(text).unwrap_err());
            assert!(
                error.starts_with("--plot ") && error.contains(why),
                "{error}"
            );
        }
    }
}

//! The figures of a paper, and the choice of some of them.

use classyard_report::failure::Failure;

use super::claims::Section;
use super::request::Request;
use super::study::Study;

/// A figure or table of a paper, or several that are measured together.
pub(super) struct Figure {
    pub(super) name: &'static str,
    pub(super) draw: fn(&mut Study<'_>) -> Result<Section, Failure>,
}

/// Returns the requested figures of a paper, in the order of `figures`, which has all.
///
/// # Errors
/// [`Failure`] with the names of the paper's figures if one is unknown.
pub(super) fn chosen(
    request: &Request,
    figures: &'static [Figure],
) -> Result<Vec<&'static Figure>, Failure> {
    let is_unknown = |name: &&String| !figures.iter().any(|figure| figure.name == name.as_str());
    if let Some(name) = request.figures.iter().find(is_unknown) {
        let names: Vec<&str> = figures.iter().map(|figure| figure.name).collect();
        return Err(Failure::usage(format!(
            "{} has no figure `{name}`; expected some of {}",
            request.paper.name,
            names.join(", ")
        )));
    }
    let is_chosen = |figure: &&Figure| {
        let names = request.figures.iter();
        request.figures.is_empty() || names.into_iter().any(|name| name == figure.name)
    };
    Ok(figures.iter().filter(is_chosen).collect())
}

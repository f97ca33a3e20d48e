//! The figures of a paper, and the choice of some of them.

use classyard_report::failure::Failure;

use super::claims::Section;
use super::inputs::{Input, LeftOut};
use super::request::Request;
use super::study::Study;

/// Measures and draws a figure.
type Draw = fn(&mut Study<'_>) -> Result<Section, Failure>;

/// A figure or table of a paper, or several that are measured together.
pub(super) struct Figure {
    pub(super) name: &'static str,
    pub(super) draw: Draw,
    /// The figure's quantities with own inputs, if it can use any.
    pub(super) own: Option<OwnFigure>,
}

/// A figure with own inputs.
pub(super) struct OwnFigure {
    /// The inputs that the figure can use.
    pub(super) accepts: &'static [Input],
    /// True if all engines must take updates.
    pub(super) needs_updates: bool,
    pub(super) draw: Draw,
}

/// The chosen figures.
pub(super) struct Chosen {
    /// Names, and the functions that draw the figures.
    pub(super) figures: Vec<(&'static str, Draw)>,
    pub(super) left_out: Vec<LeftOut>,
}

/// Returns the requested figures of a paper, in the order of `figures`, which has all.
///
/// # Errors
/// [`Failure`] with the names of the paper's figures if one is unknown, and if a requested
/// figure, or every figure, cannot use an own input.
pub(super) fn chosen(request: &Request, figures: &'static [Figure]) -> Result<Chosen, Failure> {
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
    let has_own_inputs = !request.inputs.given().is_empty();
    let mut chosen = Chosen {
        figures: Vec::new(),
        left_out: Vec::new(),
    };
    for figure in figures.iter().filter(is_chosen) {
        match refusal(figure, request) {
            None => {
                let own = figure.own.as_ref().filter(|_| has_own_inputs);
                let draw = own.map_or(figure.draw, |own| own.draw);
                chosen.figures.push((figure.name, draw));
            }
            Some(reason) if request.figures.is_empty() => chosen.left_out.push(LeftOut {
                figure: figure.name,
                reason,
            }),
            Some(reason) => {
                let failure = Failure::usage(format!(
                    "figure `{}` of {} {reason}",
                    figure.name, request.paper.name
                ));
                return Err(failure.with_help(usable(request, figures)));
            }
        }
    }
    match (chosen.figures.is_empty(), chosen.left_out.first()) {
        (true, Some(left_out)) => Err(Failure::usage(format!(
            "no figure of {} can use these inputs: {}",
            request.paper.name,
            left_out.text()
        ))
        .with_help(usable(request, figures))),
        _ => Ok(chosen),
    }
}

/// Returns the reason why a figure cannot use an own input; `None` if it can use all.
fn refusal(figure: &Figure, request: &Request) -> Option<String> {
    let accepts = figure.own.as_ref().map_or(&[][..], |own| own.accepts);
    let given = request.inputs.given();
    if let Some(input) = given.iter().find(|input| !accepts.contains(input)) {
        return Some(format!("cannot use {}", input.option()));
    }
    let needs_updates = figure.own.as_ref().is_some_and(|own| own.needs_updates);
    let engines = request.inputs.engines();
    let refused = engines.iter().find(|engine| !engine.is_dynamic());
    let refused = refused.filter(|_| needs_updates);
    refused.map(|engine| format!("cannot use --engines {engine}, which takes no updates"))
}

/// Returns the own inputs that each figure can use, for people.
fn usable(request: &Request, figures: &[Figure]) -> String {
    let with_inputs = figures.iter().filter_map(|figure| {
        let own = figure.own.as_ref()?;
        let options: Vec<&str> = own.accepts.iter().map(|input| input.option()).collect();
        Some(format!("{}: {}", figure.name, options.join(", ")))
    });
    let with_inputs: Vec<String> = with_inputs.collect();
    match with_inputs.is_empty() {
        true => format!("no figure of {} takes own inputs", request.paper.name),
        false => format!("figures that take own inputs: {}", with_inputs.join("; ")),
    }
}

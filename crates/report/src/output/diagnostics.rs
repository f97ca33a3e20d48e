//! Bad lines of a file, shown with the errors in them.

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use classyard_workload::diagnostic::{Problem, Problems};

use super::style::counted;

/// Draws the problems of a file that was not loaded, with help.
pub(crate) fn render(problems: &Problems) -> String {
    let renderer = Renderer::styled().decor_style(DecorStyle::Ascii);
    let mut text = String::new();
    for problem in problems.shown() {
        text.push_str(&renderer.render(&[group(problems.source(), problem)]));
        text.push_str("\n\n");
    }
    let hidden = problems.total() - problems.shown().len();
    if hidden > 0 {
        let title = format!("and {} more that are not shown", counted(hidden, "problem"));
        text.push_str(&renderer.render(&[Group::with_title(Level::NOTE.primary_title(title))]));
        text.push('\n');
    }
    let title = format!(
        "{}: {}; nothing was loaded",
        problems.source(),
        counted(problems.total(), "bad line")
    );
    let mut closing = vec![Group::with_title(Level::ERROR.primary_title(title))];
    if problems.can_be_skipped() {
        let help = "use --skip-bad to leave the bad lines out and keep the good ones";
        closing.push(Group::with_title(Level::HELP.secondary_title(help)));
    }
    text.push_str(&renderer.render(&closing));
    text.push('\n');
    text
}

fn group<'a>(source: &'a str, problem: &'a Problem) -> Group<'a> {
    let title = Level::ERROR.primary_title(problem.found.as_str());
    let expected = format!("expected {}", problem.expected);
    match span(problem) {
        Some(span) => title.element(
            Snippet::source(problem.excerpt.as_str())
                .line_start(problem.line)
                .path(source)
                .annotation(AnnotationKind::Primary.span(span).label(expected)),
        ),
        None => title
            .element(
                Origin::path(source)
                    .line(problem.line)
                    .char_column(problem.column),
            )
            .element(Level::NOTE.message(expected)),
    }
}

/// Returns the offending bytes of the excerpt, unless they were cut off.
fn span(problem: &Problem) -> Option<std::ops::Range<usize>> {
    let text = &problem.excerpt;
    let offset = |chars: usize| {
        let mut ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
        ends.nth(chars)
    };
    let start = offset(problem.column.checked_sub(1)?)?;
    let end_offset = offset(problem.column - 1 + problem.length).unwrap_or(text.len());
    Some(start..end_offset)
}

//! Errors of the package, with the place of each problem as attributes.

use classyard::error::UpdateError as ChangeError;
use classyard_arrow::BatchError;
use classyard_text::Problem;
use classyard_workload::diagnostic::ReadError;
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

create_exception!(classyard, Error, PyException, "An error of classyard.");
create_exception!(
    classyard,
    ParseError,
    Error,
    "A text has no rules, or bad lines.\n\n`file`, `line`, `column`, `found` and `expected` \
     describe the first problem; `line` and `column` count from 1, and are None if the text as \
     a whole is at fault. `problems` has up to 20 problems as tuples (line, column, found, \
     expected), and `total` is the number of all."
);
create_exception!(
    classyard,
    ColumnError,
    Error,
    "Columns have no header in each row.\n\n`column` is the column at fault, or None. `row` is \
     the row, counted from 0, or None if the whole column is at fault."
);
create_exception!(
    classyard,
    UpdateError,
    Error,
    "A transaction was refused; nothing was changed.\n\n`change` is `insert`, `modify` or \
     `remove`, and `index` is the position in that list. Both are None if no single change is \
     at fault."
);

/// Adds the errors to the module.
pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("Error", py.get_type::<Error>())?;
    module.add("ParseError", py.get_type::<ParseError>())?;
    module.add("ColumnError", py.get_type::<ColumnError>())?;
    module.add("UpdateError", py.get_type::<UpdateError>())
}

/// Returns an error without attributes.
pub(crate) fn other(error: impl std::fmt::Display) -> PyErr {
    Error::new_err(error.to_string())
}

/// Sets the attributes of a [`ParseError`]. `problems` are the problems that are shown.
fn parse_error(
    py: Python<'_>,
    message: String,
    file: &str,
    problems: &[Problem],
    total: usize,
) -> PyErr {
    let error = ParseError::new_err(message);
    let set = || -> PyResult<()> {
        let value = error.value(py);
        let first = problems.first();
        value.setattr("file", file)?;
        value.setattr("line", first.map(|problem| problem.line))?;
        value.setattr("column", first.map(|problem| problem.column))?;
        value.setattr("found", first.map(|problem| problem.found.as_str()))?;
        value.setattr("expected", first.map(|problem| problem.expected.as_str()))?;
        let tuples = problems.iter().map(|problem| {
            let Problem {
                line,
                column,
                found,
                expected,
                ..
            } = problem;
            (*line, *column, found.as_str(), expected.as_str())
        });
        value.setattr("problems", tuples.collect::<Vec<_>>())?;
        value.setattr("total", total)
    };
    set().err().unwrap_or(error)
}

/// Returns the error of reading rules. `offset` is added to the numbers of lines, if the text
/// is one line of a list.
pub(crate) fn read_error(py: Python<'_>, error: &ReadError, offset: i64) -> PyErr {
    match error {
        ReadError::Bad(problems) => {
            let shown = problems.shown().iter().cloned().map(|mut problem| {
                let line = i64::try_from(problem.line).unwrap_or(i64::MAX) + offset;
                problem.line = usize::try_from(line).unwrap_or(0);
                problem
            });
            let shown: Vec<Problem> = shown.collect();
            let lines = shown.iter().map(|problem| {
                let Problem {
                    line,
                    column,
                    found,
                    expected,
                    ..
                } = problem;
                format!(
                    "{}:{line}:{column}: {found}; expected {expected}",
                    problems.source()
                )
            });
            let mut message = lines.collect::<Vec<_>>().join("\n");
            if problems.total() > shown.len() {
                message += &format!("\nand {} more problems", problems.total() - shown.len());
            }
            parse_error(py, message, problems.source(), &shown, problems.total())
        }
        ReadError::Format {
            file,
            found,
            expected,
        } => {
            let parsed = parse_error(py, error.to_string(), file, &[], 1);
            let value = parsed.value(py);
            let set = value
                .setattr("found", found)
                .and_then(|()| value.setattr("expected", expected));
            set.err().unwrap_or(parsed)
        }
        ReadError::Io { file, .. }
        | ReadError::Limit { file, .. }
        | ReadError::SeveralTables { file, .. }
        | ReadError::NoSuchTable { file, .. }
        | ReadError::NoTables { file, .. }
        | ReadError::TooLong { file, .. } => parse_error(py, error.to_string(), file, &[], 1),
        _ => parse_error(py, error.to_string(), "", &[], 1),
    }
}

/// Returns a [`ColumnError`].
pub(crate) fn column_error(
    py: Python<'_>,
    message: String,
    column: Option<&str>,
    row: Option<usize>,
) -> PyErr {
    let error = ColumnError::new_err(message);
    let value = error.value(py);
    let set = value
        .setattr("column", column)
        .and_then(|()| value.setattr("row", row));
    set.err().unwrap_or(error)
}

pub(crate) fn batch_error(py: Python<'_>, error: &BatchError) -> PyErr {
    column_error(py, error.to_string(), error.column(), error.row())
}

/// Returns an [`UpdateError`] about a change: its list, and its position there.
pub(crate) fn update_error(
    py: Python<'_>,
    message: String,
    change: Option<(&str, usize)>,
) -> PyErr {
    let error = UpdateError::new_err(message);
    let value = error.value(py);
    let list = value.setattr("change", change.map(|(list, _)| list));
    let set = list.and_then(|()| value.setattr("index", change.map(|(_, index)| index)));
    set.err().unwrap_or(error)
}

/// Returns the text of a refused change without its number, which counts all changes.
pub(crate) fn refusal(error: &ChangeError) -> String {
    let text = error.to_string();
    let numbered = format!("change {}: ", error.change());
    text.strip_prefix(&numbered)
        .map_or(text.clone(), str::to_owned)
}

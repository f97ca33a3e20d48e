//! Calls of instructions, for the vectors of each instruction set.

/// Executes instructions that access no memory.
macro_rules! execute {
    ($call:expr) => {{
        #[allow(unused_unsafe)] // NEON's are safe, as all processors of its kind have it
        // SAFETY: the proof of an instruction set, or a vector made with one, means that
        // the processor has the instructions. They access no memory.
        unsafe {
            $call
        }
    }};
}

/// Implements operations of two vectors, each by one instruction.
macro_rules! binary {
    ($($name:ident: $instruction:ident),* $(,)?) => {
        $(
            #[inline(always)]
            fn $name(self, other: Self) -> Self {
                Self(execute!($instruction(self.0, other.0)))
            }
        )*
    };
}

pub(super) use {binary, execute};

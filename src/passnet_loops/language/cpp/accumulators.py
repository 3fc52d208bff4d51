"""The C++ of reductions: the lines before, in and after an inner loop."""

from passnet.errors import InputError
from passnet.passes.codegen.cpp_source import CPP_TYPES
from passnet_loops.language.language import Reduce


class Accumulators:
    """The lines that the reductions of an inner loop need."""

    def __init__(self) -> None:
        self._before: list[str] = []
        self._after: list[str] = []
        self._means: list[str] = []
        self._clauses: list[str] = []
        self._is_simd = True
        self.dtypes: dict[str, str] = {}

    def begin_second(self) -> None:
        """Forget the lines for means."""
        self._before, self._clauses, self._is_simd = [], [], True

    def declarations(self) -> list[str]:
        """Return the lines before the loop."""
        return self._before

    def means(self, count: int) -> list[str]:
        """Return the lines after the loop for means."""
        return [f"const auto {name} = float({name}_sum / {count});" for name in self._means]

    def results(self) -> list[str]:
        """Return the lines after the loop."""
        return self._after

    def pragma(self) -> str:
        """Return the pragma of the loop."""
        if not self._is_simd:
            return "GCC ivdep"
        return " ".join(["omp simd", *self._clauses])

    def add(self, step: Reduce, value: str, dtype: str, linear: str, only_means: bool) -> list[str]:
        """Return the lines in the loop for a reduction."""
        if only_means and step.kind != "welford":
            return []
        for name in step.names:
            if name in self.dtypes and not only_means and step.kind != "welford":
                raise InputError(f"the name {name} has a meaning already")
        name = step.names[0]
        is_real = dtype in ("float32", "float64")
        wide = "double" if is_real else "int64_t"
        narrow = CPP_TYPES[dtype] if is_real else "int64_t"
        match step.kind:
            case "sum" | "prod":
                sign, start = ("+", 0) if step.kind == "sum" else ("*", 1)
                self._before.append(f"{wide} {name}_all = {start};")
                self._after.append(f"const {narrow} {name} = {narrow}({name}_all);")
                self._clauses.append(f"reduction({sign}:{name}_all)")
                self.dtypes[name] = dtype if is_real else "int64"
                return [f"{name}_all {sign}= {wide}({value});"]
            case "max" | "min":
                return self._extreme(step.kind, name, value, dtype)
            case "any":
                self._before.append(f"int {name}_all = 0;")
                self._after.append(f"const bool {name} = {name}_all != 0;")
                self._clauses.append(f"reduction(|:{name}_all)")
                self.dtypes[name] = "bool"
                return [f"{name}_all |= int(bool({value}));"]
            case "argmax" | "argmin":
                kind = CPP_TYPES[dtype]
                worst = f"std::numeric_limits<{kind}>::lowest()"
                if step.kind == "argmin":
                    worst = f"std::numeric_limits<{kind}>::max()"
                if is_real:
                    sign = "-" if step.kind == "argmax" else ""
                    worst = f"{sign}std::numeric_limits<{kind}>::infinity()"
                self._before.append(f"IndexValue<{kind}> {name}_all{{0, {worst}}};")
                self._after.append(f"const int64_t {name} = {name}_all.index;")
                self._is_simd = False
                self.dtypes[name] = "int64"
                return [f"{step.kind}_combine({name}_all, {kind}({value}), {linear});"]
        mean, squares = step.names
        if only_means:
            self._before.append(f"double {mean}_sum = 0;")
            self._clauses.append(f"reduction(+:{mean}_sum)")
            self._means.append(mean)
            return [f"{mean}_sum += {value};"]
        self._before.append(f"double {squares}_all = 0;")
        self._after.append(f"const float {squares} = float({squares}_all);")
        self._clauses.append(f"reduction(+:{squares}_all)")
        self.dtypes |= {mean: "float32", squares: "float32"}
        return [
            f"const auto {mean}_off = {value} - {mean};",
            f"{squares}_all += double({mean}_off) * {mean}_off;",
        ]

    def _extreme(self, kind: str, name: str, value: str, dtype: str) -> list[str]:
        """Return the lines for a maximum or minimum; NaN where there is one."""
        of = CPP_TYPES[dtype]
        limits = f"std::numeric_limits<{of}>"
        is_real = dtype in ("float32", "float64")
        worst = f"{limits}::lowest()" if kind == "max" else f"{limits}::max()"
        if is_real:
            worst = f"{'-' if kind == 'max' else ''}{limits}::infinity()"
        sign = ">" if kind == "max" else "<"
        self._before += [f"{of} {name}_all = {worst};", f"int {name}_nan = 0;"]
        self._clauses += [f"reduction({kind}:{name}_all)", f"reduction(|:{name}_nan)"]
        result = f"{name}_nan ? {limits}::quiet_NaN() : {name}_all" if is_real else f"{name}_all"
        self._after.append(f"const {of} {name} = {result};")
        self.dtypes[name] = dtype
        return [
            f"const {of} {name}_new = {value};",
            f"{name}_nan |= int({name}_new != {name}_new);",
            f"{name}_all = {name}_new {sign} {name}_all ? {name}_new : {name}_all;",
        ]

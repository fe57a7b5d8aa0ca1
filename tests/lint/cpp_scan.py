"""A small C++ scanner: enough to find functions, classes and control flow by their braces.

It is not a parser. Comments, literals and preprocessor lines are blanked (line numbers are kept),
the rest is split into tokens, and every `{` is classified by the tokens since the last statement
ended. Of `#if ... #else ... #endif` only the first branch is read, so that braces stay balanced.
"""

import dataclasses
import re

CONTROL = {"if", "for", "while", "switch", "do", "try", "catch", "else"}
JUMPS = {"return", "continue", "break", "throw", "goto", "co_return"}
CLASS_KEYS = {"class", "struct", "union", "enum"}
NOT_NAMES = {"alignas", "decltype", "noexcept", "requires", "explicit", "__attribute__",
             "static_assert", "sizeof", "return", "throw", "if", "for", "while", "switch"}
TOKEN = re.compile(r"[A-Za-z_]\w*|\d(?:'?[\w.]|(?<=[eEpP])[+-])*"
                   r"|::|->|<=>|[<>=!+*/%&|^-]=|&&|\|\||<<|\S")
LITERAL = re.compile(
    r"""//(?:[^\n\\]|\\.)*(?:\\\n[^\n]*)*|/\*.*?\*/"""
    r"""|(?:u8|u|U|L)?R"(?P<tag>[^()\s\\]{0,16})\(.*?\)(?P=tag)\""""
    r"""|"(?:[^"\\\n]|\\.)*"|(?<![0-9A-Za-z_])(?:u8|u|U|L)?'(?:[^'\\\n]|\\.)+'""",
    re.DOTALL)


@dataclasses.dataclass
class Function:
    name: str
    line: int
    parameters: int
    has_body: bool = False
    lines: int = 0
    nesting: int = 0
    nesting_line: int = 0


@dataclasses.dataclass
class Class:
    name: str
    line: int
    bases: list


@dataclasses.dataclass
class Scan:
    functions: list = dataclasses.field(default_factory=list)
    classes: list = dataclasses.field(default_factory=list)
    balanced: bool = True


@dataclasses.dataclass
class Token:
    text: str
    line: int


@dataclasses.dataclass
class Block:
    kind: str  # namespace, class, function, lambda, control, plain, init
    head: list  # tokens of the statement this block interrupts; kept for init and lambda
    parens: int  # open parentheses when the block was opened
    controls: int = 0
    function: Function = None


def blank(match):
    """Keeps a literal visible as one token, a comment as nothing, and all line ends."""
    text = match.group(0)
    lines = "\n" * text.count("\n")
    return (" " if text.startswith(("//", "/*")) else ' "" ') + lines


def strip(source):
    """The source without comments, literals, preprocessor lines and second #if branches."""
    out, dead, continued = [], [], False
    for line in LITERAL.sub(blank, source).split("\n"):
        directive = re.match(r"\s*#\s*(\w+)", line)
        if directive and not continued:
            word = directive.group(1)
            if word.startswith("if"):
                dead.append(False)
            elif word in ("else", "elif") and dead:
                dead[-1] = True
            elif word == "endif" and dead:
                dead.pop()
        hidden = bool(directive) or continued
        continued = hidden and line.endswith("\\")
        out.append("" if hidden or any(dead) else line)
    return "\n".join(out)


def tokenize(source):
    tokens = []
    for number, line in enumerate(strip(source).split("\n"), 1):
        tokens.extend(Token(text, number) for text in TOKEN.findall(line))
    return tokens


def close_angle(texts, start):
    """The index just after the <...> that opens at start."""
    depth = parens = 0
    for i in range(start, len(texts)):
        text = texts[i]
        parens += (text in "([{") - (text in ")]}")
        if parens == 0 and text in ("<", ">"):
            depth += 1 if text == "<" else -1
            if depth == 0:
                return i + 1
    return len(texts)


def declaration(head):
    """The head without template<...>, attributes, access labels and case labels in front."""
    texts = [token.text for token in head]
    i = 0
    while i < len(texts):
        if texts[i] == "template" and texts[i + 1:i + 2] == ["<"]:
            i = close_angle(texts, i + 1)
        elif texts[i:i + 2] == ["[", "["]:
            i = texts.index("]", i) + 2
        elif texts[i] in ("public", "private", "protected", "default") and \
                texts[i + 1:i + 2] == [":"]:
            i += 2
        elif texts[i] == "case" and ":" in texts[i:]:
            i = texts.index(":", i) + 1
        else:
            break
    return head[i:]


def groups(head):
    """The (open, close) indices of every parenthesis pair outside any other bracket or <...>."""
    found, stack = [], []
    for i, token in enumerate(head):
        if token.text in "([{" and token.text:
            stack.append(i)
        elif token.text in ")]}" and stack:
            opened = stack.pop()
            if not stack and token.text == ")":
                found.append((opened, i))
    return found


def count_parameters(tokens):
    texts = [token.text for token in tokens]
    if not texts or texts == ["void"]:
        return 0
    count, depth = 1, 0
    for text in texts:
        depth += (text in "([{<") - (text in ")]}>")
        count += text == "," and depth == 0
    return count


def top_level_assignment(texts):
    depth = 0
    for i, text in enumerate(texts):
        depth += (text in "([{") - (text in ")]}")
        if text == "=" and depth == 0 and (i == 0 or texts[i - 1] != "operator"):
            return i
    return -1


def tail_is_function(texts):
    """Whether what stands between a parameter list and `{` or `;` can follow a declarator."""
    if not texts:
        return True
    if texts[0] in (":", "->", "requires", "noexcept"):
        return True
    return all(t in ("const", "volatile", "noexcept", "override", "final", "&", "&&", "try")
               for t in texts) or (texts[0] in ("const", "override", "final", "&", "&&")
                                   and tail_is_function(texts[1:]))


def signature(head):
    """The Function declared by this head, or None."""
    head = declaration(head)
    texts = [token.text for token in head]
    if not texts or texts[0] in ("using", "typedef", "friend", "return", "namespace", "goto"):
        return None
    for opened, closed in groups(head):
        before = texts[opened - 1] if opened else ""
        if before == "operator" or before in NOT_NAMES or opened == 0:
            continue
        is_operator = "operator" in texts[max(0, opened - 4):opened]
        if not re.match(r"[A-Za-z_]", before) and not is_operator:
            continue
        tail = texts[closed + 1:]
        if "=" in tail[-2:-1] and tail[-1] in ("0", "default", "delete"):
            tail = tail[:-2]
        assigned = top_level_assignment(texts[:opened])
        if assigned >= 0 or not tail_is_function(tail):
            continue
        return Function(declared_name(texts, opened), head[0].line,
                        count_parameters(head[opened + 1:closed]))
    return None


def declared_name(texts, opened):
    """The (qualified) name before the parameter list that opens here; <...> is left out."""
    for i in range(max(0, opened - 3), opened):
        if texts[i] == "operator":
            name, start = " ".join(texts[i:opened]).replace(" ( )", "()"), i
            break
    else:
        name, start = texts[opened - 1], opened - 1
    while start > 0 and texts[start - 1] in ("~", "::"):
        start -= 1
        if texts[start] == "~":
            name = "~" + name
            continue
        if start and texts[start - 1] == ">":
            depth = 0
            while start:
                start -= 1
                depth += (texts[start] == ">") - (texts[start] == "<")
                if depth == 0:
                    break
        if not start or not re.match(r"[A-Za-z_]", texts[start - 1]):
            break
        start -= 1
        name = texts[start] + "::" + name
    return name


def lambda_parameters(head):
    """The parameter count when the head ends in a lambda's introducer and declarator, or -1."""
    texts = [token.text for token in head]
    end = len(texts)
    if "->" in texts:
        arrow = len(texts) - 1 - texts[::-1].index("->")
        if not any(t in ";=" for t in texts[arrow:]):
            end = arrow
    while end and texts[end - 1] in ("mutable", "noexcept", "constexpr", "static"):
        end -= 1
    if end and texts[end - 1] == "]":
        return 0 if texts[end - 2:end] != ["]", "]"] and is_introducer(texts, end - 1) else -1
    if end and texts[end - 1] == ")":
        depth = 0
        for i in range(end - 1, -1, -1):
            depth += (texts[i] == ")") - (texts[i] == "(")
            if depth == 0:
                opened = i
                break
        else:
            return -1
        before = opened
        if before and texts[before - 1] == ">":  # []<class T>(...)
            while before and texts[before - 1] != "]":
                before -= 1
        if before and texts[before - 1] == "]" and is_introducer(texts, before - 1):
            return count_parameters(head[opened + 1:end - 1])
    return -1


def is_introducer(texts, closing):
    """Whether the [...] that closes here begins an expression, rather than indexing one."""
    depth = 0
    for i in range(closing, -1, -1):
        depth += (texts[i] == "]") - (texts[i] == "[")
        if depth == 0:
            before = texts[i - 1] if i else ""
            return not re.match(r"\w|[)\]\"]", before) or before in ("return", "co_return", "else")
    return False


def class_of(head):
    """The Class that this head opens, or None."""
    texts = [token.text for token in head]
    i = 0
    while i < len(texts) and texts[i] in ("static", "constexpr", "inline", "const", "typedef"):
        i += 1
    if i == len(texts) or texts[i] not in CLASS_KEYS or top_level_assignment(texts) >= 0:
        return None
    enum = texts[i] == "enum"
    name, bases, in_bases, depth = "", [], False, 0
    for text in texts[i + 1:]:
        depth += (text in "(<[") - (text in ")>]")
        if text == ":" and depth == 0:
            in_bases = True
        elif re.match(r"[A-Za-z_]", text) and depth == 0 and text not in ("final", "alignas"):
            if not in_bases:
                name = text
            elif text not in ("public", "private", "protected", "virtual"):
                bases.append(text)
        elif text == "::" and in_bases and bases:
            bases.pop()  # keep the last component of a qualified base
    return Class(name, head[0].line, [] if enum else bases)


class Scanner:
    def __init__(self, source):
        self.result = Scan()
        self.stack = [Block("namespace", [], 0)]
        self.head = []
        self.parens = 0
        for token in tokenize(source):
            self.take(token)
        self.result.balanced = len(self.stack) == 1

    def function(self):
        return next((b.function for b in reversed(self.stack) if b.function), None)

    def nesting(self):
        """Control flow open around this point, back to the function that holds it."""
        depth = 0
        for block in reversed(self.stack):
            depth += block.controls
            if block.kind in ("function", "class"):
                break
        return depth

    def take(self, token):
        if token.text == "{":
            self.open(token)
        elif token.text == "}":
            self.close(token)
        elif token.text == ";" and self.parens == self.stack[-1].parens:
            self.statement()
            self.head = []
        else:
            self.parens += (token.text == "(") - (token.text == ")")
            self.head.append(token)

    def statement(self):
        if self.stack[-1].kind in ("namespace", "class"):
            declared = signature(self.head)
            if declared:
                self.result.functions.append(declared)
        elif self.head and self.function():
            controls = self.controls(self.head)
            if controls and self.jumps(self.head):
                controls -= 1  # `if (x) continue;` is a guard, not a level
            self.note_nesting(controls, self.head[0].line)

    @staticmethod
    def jumps(head):
        depth = 0
        for token in head:
            depth += (token.text in "([{") - (token.text in ")]}")
            if depth == 0 and token.text in JUMPS:
                return True
        return False

    def controls(self, head):
        count, depth = 0, 0
        texts = [token.text for token in declaration(head)]
        for i, text in enumerate(texts):
            depth += (text in "([{") - (text in ")]}")
            if depth == 0 and text in CONTROL and texts[i - 1:i] != ["else"]:
                count += 1
        return count

    def note_nesting(self, controls, line):
        function, depth = self.function(), self.nesting() + controls
        if controls and function and depth > function.nesting:
            function.nesting, function.nesting_line = depth, line

    def open(self, token):
        block = self.classify(token)
        if block.kind in ("init", "lambda"):  # the statement goes on after the closing brace
            block.head = self.head + [token]
        self.stack.append(block)
        self.head = []

    def classify(self, token):
        outer, head = self.stack[-1], declaration(self.head)
        parameters = lambda_parameters(head)
        if parameters >= 0:
            self.result.functions.append(Function("lambda", token.line, parameters))
            return Block("lambda", [], self.parens)
        if self.parens > outer.parens or outer.kind == "init":
            return Block("init", [], self.parens)
        if head and head[0].text in ("namespace", "extern") or \
                [t.text for t in head[:2]] == ["inline", "namespace"]:
            return Block("namespace", [], self.parens)
        opened = class_of(head)
        if opened:
            self.result.classes.append(opened)
            return Block("class", [], self.parens)
        if outer.kind in ("namespace", "class"):
            return self.classify_outside(head)
        if head and head[0].text in CONTROL:
            controls = self.controls(head)
            self.note_nesting(controls, head[0].line)
            return Block("control", [], self.parens, controls)
        return Block("init" if head else "plain", [], self.parens)

    def classify_outside(self, head):
        declared = signature(head)
        texts = [token.text for token in head]
        if not declared or self.in_initializer_list(texts):
            return Block("init", [], self.parens)
        declared.has_body = True
        self.result.functions.append(declared)
        return Block("function", [], self.parens, function=declared)

    @staticmethod
    def in_initializer_list(texts):
        """Whether this { belongs to a member in `Foo::Foo(int a) : a_{a} {`."""
        depth = 0
        for i, text in enumerate(texts):
            depth += (text in "([{") - (text in ")]}")
            if text == ":" and depth == 0 and texts[i - 1] in (")", "noexcept"):
                return texts[-1] not in (")", "}")
        return False

    def close(self, token):
        if len(self.stack) == 1:
            self.result.balanced = False
            return
        block = self.stack.pop()
        self.head = block.head + [token] if block.kind in ("init", "lambda") else []
        self.parens = block.parens
        if block.kind == "function":
            block.function.lines = token.line - block.function.line + 1


def scan(source):
    return Scanner(source).result

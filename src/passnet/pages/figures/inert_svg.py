"""SVG files of strangers without what does more than draw: scripts, links, what loads files."""

from xml.etree import ElementTree

_SVG = "{http://www.w3.org/2000/svg}"
_XLINK = "{http://www.w3.org/1999/xlink}"
_FACTS = (
    "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}",
    "{http://purl.org/dc/elements/1.1/}",
    "{http://creativecommons.org/ns#}",
)
"""Namespaces of what Matplotlib notes about a figure."""

_NAMES = (
    "svg g defs path rect circle ellipse line polyline polygon text tspan use clipPath mask symbol "
    "title desc metadata style image linearGradient radialGradient stop pattern marker"
)
_ELEMENTS = frozenset(_NAMES.split())
"""SVG's elements that neither run, animate, link nor embed."""

_LOCAL = ("#", "data:image/png;base64,", "data:image/jpeg;base64,")


def inert_svg(content: bytes) -> bytes:
    """Return an SVG file without all that could do more than draw; ValueError if it is no XML.

    Examples:
        >>> inert_svg(b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><script/></svg>')
        b'<svg xmlns="http://www.w3.org/2000/svg" />'
    """
    if b"<!ENTITY" in content or b"<!ATTLIST" in content or b"\0" in content:
        raise ValueError("it declares entities or attributes")
    try:
        root = ElementTree.fromstring(content)  # without processing instructions and comments
    except (ElementTree.ParseError, LookupError) as cause:
        raise ValueError(f"it is not XML: {cause}") from cause
    if root.tag != f"{_SVG}svg":
        raise ValueError("it is not SVG")
    for element in root.iter():
        for child in [child for child in element if not _is_inert(child)]:
            element.remove(child)
        for attribute, value in [*element.attrib.items()]:
            local = attribute.rpartition("}")[2].lower()
            links = local == "href" and not value.strip().startswith(_LOCAL)
            if local.startswith("on") or links or _loads(value):
                del element.attrib[attribute]
    for prefix, space in (("", _SVG), ("xlink", _XLINK)):
        ElementTree.register_namespace(prefix, space.strip("{}"))
    return ElementTree.tostring(root)


def _is_inert(element: ElementTree.Element) -> bool:
    name = element.tag.removeprefix(_SVG)  # others keep their namespace in braces
    if name == "style" and _loads(element.text or ""):
        return False
    return name in _ELEMENTS or name.startswith(_FACTS)


def _loads(style: str) -> bool:
    style = "".join(style.split()).lower()
    parts = style.split("url(")[1:]
    is_escaped = "\\" in style  # CSS may write any letter by its number
    return is_escaped or "@import" in style or any(part.lstrip("\"'")[:1] != "#" for part in parts)

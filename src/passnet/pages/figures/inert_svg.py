"""Foreign SVG files as images in an SVG file of ours; their scripts do not run."""

from base64 import b64encode
from xml.etree import ElementTree


def inert_svg(content: bytes) -> bytes:
    """Return an SVG file with another one as an image: browsers run and load nothing for images.

    Raises:
        ValueError: it is no SVG file.
    """
    try:
        root = ElementTree.fromstring(content)
    except (ElementTree.ParseError, LookupError) as cause:
        raise ValueError(f"it is not XML: {cause}") from cause
    if root.tag != "{http://www.w3.org/2000/svg}svg":
        raise ValueError("it is not SVG")
    box = root.get("viewBox", "").replace(",", " ").split()
    width, height = box[2:] if len(box) == 4 else ("300", "150")  # as browsers do
    size = {"width": root.get("width", width), "height": root.get("height", height)}
    picture = ElementTree.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", **size})
    data = f"data:image/svg+xml;base64,{b64encode(content).decode()}"
    ElementTree.SubElement(picture, "image", {"width": "100%", "height": "100%", "href": data})
    return ElementTree.tostring(picture)

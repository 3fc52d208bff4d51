"""A convolutional autoencoder that returns the code and the image."""

import torch
from torch import nn

KIND = "harmless"


class AutoEncoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            *(nn.Conv2d(1, 16, 3, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(16, 32, 3, 2, 1)),
            *(nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(32 * 7 * 7, 24)),
        )
        self.decoder = nn.Sequential(
            *(nn.Linear(24, 32 * 7 * 7), nn.LeakyReLU(0.2), nn.Unflatten(1, (32, 7, 7))),
            *(nn.ConvTranspose2d(32, 16, 4, 2, 1), nn.LeakyReLU(0.2)),
            *(nn.ConvTranspose2d(16, 1, 3, 2, 1, output_padding=1), nn.Sigmoid()),
        )

    def forward(self, image):
        code = self.encoder(image)
        return code, self.decoder(code)


def make():
    return AutoEncoder().eval()


def example():
    return (torch.rand(4, 1, 28, 28),)


def calls():
    yield "fresh", (torch.rand(4, 1, 28, 28),)
    yield "black and white", (torch.rand(4, 1, 28, 28).round(),)
    yield "black", (torch.zeros(4, 1, 28, 28),)
    yield "large", (100 * torch.rand(4, 1, 28, 28),)
